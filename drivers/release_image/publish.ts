// Makes the image of a release: the layers of the base, one for each program, the files, and how they are started. Each
// part that the registry has is skipped, so that a publish which was killed resumes where it was.
import { mkdir } from 'node:fs/promises';
import { rmSync } from 'node:fs';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import { openRegistryClient } from '../image/registry_client';
import type { Repository } from '../image/repository';
import type { PublishedImage, PublishRequest, ReleaseImageDriver } from '../release_image';
import { ReleaseImageError } from './failure';
import { ensureBase, imageManifest, type BaseImage } from './base';
import { copyImage } from './copy';
import { treeEntries } from './file_tree';
import { DEFAULT_PORT, FILES_DIRECTORY, LAUNCH, launchEntries, RELEASE_USER } from './launch_layer';
import { writeLayer, type Layer } from './layer';
import {
  BASE_REPOSITORY,
  repositoryOf,
  TOOLS_REPOSITORY,
  uploadLayer,
  withStagedFile,
  type ReleaseImageParts,
} from './store';
import { contentDigest } from '../image/manifest';
import { ensureToolLayer, movedTools, toolName, TOOLS_DIRECTORY } from './tool_layers';

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json';
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Removes staging files of an earlier process. */
export function openReleaseImages(
  given: Omit<ReleaseImageParts, 'registry'>,
): (registry: string) => ReleaseImageDriver {
  rmSync(path.join(given.directory, 'staging'), { recursive: true, force: true });
  return (registry) => driverFor({ ...given, registry });
}

function driverFor(parts: ReleaseImageParts): ReleaseImageDriver {
  return {
    publish: (request, ctx) => publish(parts, request, ctx),
    copy: (request, ctx) => copyImage(parts, request, ctx),
    async remove({ repository, digest }, ctx) {
      const name = repository.slice(repository.indexOf('/') + 1);
      await repositoryOf(parts, name).removeManifest(digest, ctx);
    },
  };
}

async function publish(parts: ReleaseImageParts, request: PublishRequest, ctx: DriverContext): Promise<PublishedImage> {
  await mkdir(path.join(parts.directory, 'staging'), { recursive: true, mode: 0o700 });
  const base = await ensureBase(parts, ctx);
  await parts.toolchains.ensure(request.tools, ctx);
  const tools: Layer[] = [];
  for (const tool of sortedTools(request)) tools.push(await ensureToolLayer(parts, tool, ctx));
  const target = repositoryOf(parts, request.repository, [BASE_REPOSITORY, TOOLS_REPOSITORY]);
  for (const [from, layers] of [[BASE_REPOSITORY, base.layers] as const, [TOOLS_REPOSITORY, tools] as const])
    for (const { digest } of layers) await takeLayer(parts, target, digest, from, ctx);
  const own = await ownLayers(parts, request, { base, target }, ctx);
  const layers = [...base.layers, ...tools, ...own];
  const config = configurationOf(request, base, layers);
  const configDigest = contentDigest(config);
  if (!(await target.hasBlob(configDigest, ctx))) await target.upload(configDigest, [config], ctx);
  const manifest = imageManifest({ mediaType: CONFIG_TYPE, digest: configDigest, size: config.length }, layers);
  const image = { repository: `${parts.registry}/${request.repository}`, digest: contentDigest(manifest) };
  await request.announce(image);
  await target.putManifest(request.tag, MANIFEST_TYPE, manifest, ctx);
  return image;
}

function sortedTools({ tools }: PublishRequest): PublishRequest['tools'] {
  return [...tools].sort((one, other) => (toolName(one) < toolName(other) ? -1 : 1));
}

/** The files of the release and how they are started. */
async function ownLayers(
  parts: ReleaseImageParts,
  request: PublishRequest,
  { base, target }: { base: BaseImage; target: Repository },
  ctx: DriverContext,
): Promise<Layer[]> {
  const files = treeEntries(request.directory, {
    ...{ at: FILES_DIRECTORY.slice(1), owner: RELEASE_USER, moved: movedTools(parts) },
  });
  const programs = sortedTools(request).map((tool) => `${TOOLS_DIRECTORY}/${toolName(tool)}/bin`);
  const launch = launchEntries({ ...request, programs, accounts: base.accounts });
  const layers: Layer[] = [];
  for (const [name, entries] of [['files', files] as const, ['launch', launch] as const])
    await withStagedFile(parts, `${request.tag}.${name}`, async (file) => {
      const layer = await writeLayer(file, entries, ctx);
      await uploadLayer(target, layer, file, ctx);
      layers.push(layer);
    });
  return layers;
}

/** Servers on several machines mount a layer, or send it once more. */
async function takeLayer(
  parts: ReleaseImageParts,
  target: Repository,
  digest: string,
  from: string,
  ctx: DriverContext,
): Promise<void> {
  const full = `${parts.registry}/${from}`;
  if ((await target.hasBlob(digest, ctx)) || (await target.mount(digest, full, ctx))) return;
  const local = parts.access([{ type: 'repository', name: full, actions: ['pull'] }]);
  const reference = { host: new URL(local.url).host, repository: full, tag: null, digest };
  const client = openRegistryClient(parts.unchecked, reference, { credentials: null, local });
  const { response, close } = await client.blob(digest, 0, ctx);
  await target.upload(digest, response, ctx).finally(close);
}

/**
 * No `created`: the same release has the same digest whenever it is made, and nothing that belongs to a release says
 * when its commit was made.
 */
function configurationOf(request: PublishRequest, base: BaseImage, layers: readonly Layer[]): Buffer {
  if (Object.keys(request.processes).length === 0)
    throw new ReleaseImageError('The release has no process type with a command, so there is nothing to start.');
  const variables = { PATH: DEFAULT_PATH, ...pairsOf(base.env), ...request.env, PORT: DEFAULT_PORT };
  const defined = Object.entries({ ...variables, HOME: FILES_DIRECTORY, LANG: 'C.UTF-8' });
  const types = Object.keys(request.processes).sort();
  return Buffer.from(
    JSON.stringify({
      ...{ architecture: base.architecture, os: base.os },
      config: {
        User: `${RELEASE_USER}:${RELEASE_USER}`,
        ExposedPorts: { [`${DEFAULT_PORT}/tcp`]: {} },
        Env: defined.sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, value]) => `${name}=${value}`),
        Entrypoint: [LAUNCH],
        Cmd: [types.includes('web') ? 'web' : types[0]],
        WorkingDir: FILES_DIRECTORY,
        Labels: Object.fromEntries(Object.entries(request.labels).sort(([one], [other]) => (one < other ? -1 : 1))),
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    }),
  );
}

function pairsOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}
