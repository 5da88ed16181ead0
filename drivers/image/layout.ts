// An image in an OCI layout on the disk (image-spec, image-layout.md), read as one of a registry is. Programs of a
// tenant wrote it: only plain files in plain directories are read, and what is read is verified by its digest.
import { createReadStream } from 'node:fs';
import { lstat, readFile } from 'node:fs/promises';
import path from 'node:path';
import { broken } from './manifest';
import { MANIFEST_BYTES_MAX, type RegistryClient } from './registry_client';
import { readJson } from './registry_token';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

export function openLayoutClient(directory: string): RegistryClient {
  const blob = (digest: string): Promise<string> => plainFile(directory, ['blobs', ...digest.split(':')]);
  return {
    async manifest(reference) {
      const digest = reference.includes(':') ? reference : await firstManifest(directory);
      return { content: await readSmall(await blob(digest)), mediaType: MANIFEST };
    },
    async blob(digest, offset) {
      const response = createReadStream(await blob(digest), { start: offset });
      return { from: offset, response, close: () => void response.destroy() };
    },
  };
}

async function firstManifest(directory: string): Promise<string> {
  const { manifests } = readJson(await readSmall(await plainFile(directory, ['index.json'])));
  const [first] = Array.isArray(manifests) ? (manifests as { digest?: unknown }[]) : [];
  if (typeof first?.digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(first.digest)) return first.digest;
  throw broken('the build left no manifest of it');
}

async function plainFile(directory: string, parts: string[]): Promise<string> {
  for (let depth = 0; depth < parts.length; depth += 1) {
    const found = await lstat(path.join(directory, ...parts.slice(0, depth))).catch(() => null);
    if (!found?.isDirectory()) throw broken('the build left no image');
  }
  const file = path.join(directory, ...parts);
  if (!(await lstat(file).catch(() => null))?.isFile()) throw broken('the build left a part of it out');
  return file;
}

async function readSmall(file: string): Promise<Buffer> {
  if ((await lstat(file)).size > MANIFEST_BYTES_MAX) throw broken('its manifest is too large');
  return readFile(file);
}
