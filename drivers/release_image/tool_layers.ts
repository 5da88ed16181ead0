// A layer for each version of a program that builds get (drivers/toolchain.ts), shared by all applications: it is made
// and sent once.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import { replaceFile } from '../../core/files';
import { contentDigest } from '../image/manifest';
import type { Tool } from '../toolchain';
import { imageManifest } from './base';
import { treeEntries } from './file_tree';
import { writeLayer, type Layer } from './layer';
import { repositoryOf, TOOLS_REPOSITORY, uploadLayer, withStagedFile, type ReleaseImageParts } from './store';

/** Where programs are in images. */
export const TOOLS_DIRECTORY = '/platform/tools';
/** Programs belong to root, which appears as the user nobody in the sandbox of an instance. */
const ROOT = 0;
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
/** image-spec, manifest.md, "Guidance for an Empty Descriptor". */
const EMPTY = Buffer.from('{}');
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json';
/** Raised with what changes the bytes of layers. */
const FORMAT = 1;

export function toolName({ name, version }: Tool): string {
  return `${name}-${version}`;
}

/** Maps paths of programs on this host to paths in an image. */
export function movedTools({ toolchains }: ReleaseImageParts): { from: string; to: string } {
  return { from: toolchains.directory, to: TOOLS_DIRECTORY };
}

/** The layer of a program, in the repository of programs. @throws DriverError */
export async function ensureToolLayer(parts: ReleaseImageParts, tool: Tool, ctx: DriverContext): Promise<Layer> {
  const name = toolName(tool);
  const record = path.join(parts.directory, `tool-${FORMAT}-${name}.json`);
  const repository = repositoryOf(parts, TOOLS_REPOSITORY);
  const text = await readFile(record, 'utf8').catch(() => null);
  const known = text === null ? null : (JSON.parse(text) as Layer);
  if (known && (await repository.hasManifest(name, ctx)) && (await repository.hasBlob(known.digest, ctx))) return known;
  return withStagedFile(parts, name, async (file) => {
    const entries = treeEntries(path.join(parts.toolchains.directory, name), {
      ...{ at: `${TOOLS_DIRECTORY.slice(1)}/${name}`, owner: ROOT, moved: movedTools(parts) },
    });
    const layer = await writeLayer(file, entries, ctx);
    await uploadLayer(repository, layer, file, ctx);
    const empty = { mediaType: EMPTY_TYPE, digest: contentDigest(EMPTY), size: EMPTY.length };
    if (!(await repository.hasBlob(empty.digest, ctx))) await repository.upload(empty.digest, [EMPTY], ctx);
    // Holds the layer while no release has it.
    await repository.putManifest(name, MANIFEST_TYPE, imageManifest(empty, [layer]), ctx);
    await replaceFile(record, JSON.stringify(layer));
    return layer;
  });
}
