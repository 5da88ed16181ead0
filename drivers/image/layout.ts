// An image in a directory on the disk, as `dir:` of containers-transports(5) leaves it: `manifest.json`, and a file for
// each digest. It is read like an image of a registry. Programs of a tenant wrote it: only regular files in a regular
// directory are read, and their contents are verified by digest.
import { createReadStream } from 'node:fs';
import { lstat, readFile } from 'node:fs/promises';
import path from 'node:path';
import { broken } from './manifest';
import { MANIFEST_BYTES_MAX, type RegistryClient } from './registry_client';
import { readJson } from './registry_token';

export function openLayoutClient(directory: string): RegistryClient {
  return {
    async manifest() {
      const content = await readSmall(await plainFile(directory, 'manifest.json'));
      const { mediaType } = readJson(content);
      return { content, mediaType: typeof mediaType === 'string' ? mediaType : '' };
    },
    async blob(digest, offset) {
      const file = await plainFile(directory, digest.slice(digest.indexOf(':') + 1));
      const response = createReadStream(file, { start: offset });
      return { from: offset, response, close: () => void response.destroy() };
    },
  };
}

async function plainFile(directory: string, name: string): Promise<string> {
  const found = await lstat(directory).catch(() => null);
  if (!found?.isDirectory()) throw broken('the build left no image');
  const file = path.join(directory, name);
  if (!(await lstat(file).catch(() => null))?.isFile()) throw broken('the build left a part of it out');
  return file;
}

async function readSmall(file: string): Promise<Buffer> {
  if ((await lstat(file)).size > MANIFEST_BYTES_MAX) throw broken('its manifest is too large');
  return readFile(file);
}
