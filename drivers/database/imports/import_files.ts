// Files of imports: <directory of databases>/imports/<id>/source, which only the platform can read.
import { chmod, mkdir, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { newFileStream } from '../../../core/files';
import { requireName } from '../../hosted_server/server_directory';

/** More than `bytesMax`. */
export class FileTooLarge extends Error {
  override readonly name = 'FileTooLarge';
}

/** The disk of the host keeps this for its own work. */
const RESERVE_BYTES = 2 ** 30;

export interface ImportFiles {
  /** Writes a file; one that breaks off or is too large is removed. @throws FileTooLarge, errors of the body */
  receive(id: string, body: AsyncIterable<Buffer>, bytesMax: number, signal?: AbortSignal): Promise<number>;
  /** Path of the file, or null. */
  find(id: string): Promise<string | null>;
  /** Removes the file, and what was unpacked beside it. */
  remove(id: string): Promise<void>;
  /** Ids of all imports with files. */
  list(): Promise<string[]>;
}

/** @param databaseDir directory of databases */
export function openImportFiles(databaseDir: string): ImportFiles {
  const root = path.join(databaseDir, 'imports');
  const placeOf = (id: string): string => {
    requireName(id);
    return path.join(root, id);
  };
  return {
    async receive(id, body, bytesMax, signal) {
      const place = placeOf(id);
      await mkdir(place, { recursive: true, mode: 0o711 });
      for (const one of [root, place]) await chmod(one, 0o711);
      const part = path.join(place, 'source.part');
      await rm(part, { force: true });
      const counter = limited(Math.min(bytesMax, await room(root)));
      const file = await newFileStream(part, true);
      try {
        await pipeline(body, counter.stream, file, { signal });
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
      await rename(part, path.join(place, 'source'));
      return counter.bytes();
    },
    async find(id) {
      const file = path.join(placeOf(id), 'source');
      return (await stat(file).catch(() => null)) && file;
    },
    remove: (id) => rm(placeOf(id), { recursive: true, force: true }),
    list: () => readdir(root).catch(() => []),
  };
}

function limited(bytesMax: number): { stream: Transform; bytes(): number } {
  let bytes = 0;
  const stream = new Transform({
    transform(piece: Buffer, _encoding, done) {
      bytes += piece.length;
      if (bytes > bytesMax) done(new FileTooLarge());
      else done(null, piece);
    },
  });
  return { stream, bytes: () => bytes };
}

async function room(place: string): Promise<number> {
  const { bavail, bsize } = await statfs(place);
  return Math.max(0, bavail * bsize - RESERVE_BYTES);
}
