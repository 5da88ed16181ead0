// Compressed layers: gzip by Node.js, zstd by the program of the host.
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { broken } from './manifest';

interface Decompressed {
  stream: Readable;
  /** Fails where the content is damaged. */
  ended: Promise<void>;
}

export function decompress(source: Readable, mediaType: string): Decompressed {
  if (mediaType.endsWith('gzip')) {
    const stream = createGunzip({ chunkSize: 256 * 1024 });
    return { stream, ended: pipeline(source, stream) };
  }
  if (mediaType.endsWith('zstd')) return byZstd(source);
  return { stream: source, ended: Promise.resolve() };
}

function byZstd(source: Readable): Decompressed {
  const child = spawn('zstd', ['-d', '-c', '--memory=128MB'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = new Promise<void>((resolve, reject) => {
    child.once('error', () =>
      reject(broken('a layer is compressed with zstd, and this host lacks the program `zstd`')),
    );
    child.once('exit', (code) => (code === 0 ? resolve() : reject(broken('a layer is not valid zstd'))));
  });
  const fed = pipeline(source, child.stdin).catch(() => undefined);
  exited.catch((error: Error) => child.stdout.destroy(error));
  child.stdout.once('close', () => child.kill('SIGKILL'));
  return { stream: child.stdout, ended: Promise.all([exited, fed]).then(() => undefined) };
}
