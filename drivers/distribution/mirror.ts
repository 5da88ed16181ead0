// Rows that mirror a Distribution server, for listings and counts. Notifications update them at once; a periodic
// comparison finds changes whose notification was lost.
import { setTimeout as sleep } from 'node:timers/promises';
import type { RegistryContent, RepositoryName, ServedRegistry } from '../../core/protocols/registry_content';
import type { DriverContext } from '../../core/driver';
import { parseManifest, parseRepositoryName } from '../../engines/registry';
import type { DistributionApi } from './api';
import type { RegistryEvent } from './events';

const TAG_TURNS = 20;
const TAG_MS = 100;
const ADOPTIONS_MAX = 10;

interface MirrorParts {
  api: DistributionApi;
  content: RegistryContent;
}

/**
 * Reads the current state of the server, so that events may be repeated and arrive in any order, at any number of
 * processes: what was written is compared with the server again, since another one may have written meanwhile.
 */
export async function applyEvent(parts: MirrorParts, event: RegistryEvent, ctx: DriverContext): Promise<void> {
  const { registry: registryName, repository } = parseRepositoryName(event.name);
  const registry = await parts.content.find(registryName);
  if (!registry || event.action === 'pull') return;
  const name = { registry: registryName, repository };
  if (event.action === 'push') {
    if (!event.isManifest) return;
    const place = await settledReference(parts, event, ctx);
    for (let turn = 0; turn < ADOPTIONS_MAX; turn += 1) {
      const adopted = await adopt({ ...parts, subject: event.actor }, registry, name, place, ctx);
      if ((await parts.api.digest(event.name, place.reference, ctx)) === adopted) return;
    }
    return;
  }
  if ((await parts.api.digest(event.name, event.digest, ctx)) !== null) return;
  const deleted = await parts.content.deleteManifest(registry.id, repository, event.digest, event.actor);
  // Pushed again meanwhile, with tags that only a comparison finds.
  if (deleted && (await parts.api.digest(event.name, event.digest, ctx)) !== null)
    await compareRegistry(parts, registryName, ctx);
}

/**
 * The server sends the notification of a push shortly before the tag is updated. A tag with another digest afterwards
 * was pushed again.
 */
async function settledReference(
  { api }: MirrorParts,
  { name, tag, digest }: RegistryEvent,
  ctx: DriverContext,
): Promise<{ reference: string; tag: string | null }> {
  if (tag === null) return { reference: digest, tag };
  for (let turn = 0; turn < TAG_TURNS && (await api.digest(name, tag, ctx)) !== digest; turn += 1) await sleep(TAG_MS);
  return { reference: tag, tag };
}

/** Compares all tags of a registry, and untagged manifests. */
export async function compareRegistry(parts: MirrorParts, registryName: string, ctx: DriverContext): Promise<void> {
  const { api, content } = parts;
  const registry = await content.find(registryName);
  if (!registry) return;
  const known = new Map(
    (await content.allTags(registry.id)).map(({ repository, tag, digest }) => [`${repository}:${tag}`, digest]),
  );
  for await (const full of api.repositories(registryName, ctx)) {
    const repository = full.slice(registryName.length + 1);
    for (const tag of await api.tags(full, ctx)) {
      const before = known.get(`${repository}:${tag}`);
      known.delete(`${repository}:${tag}`);
      if (before !== undefined && (await api.digest(full, tag, ctx)) === before) continue;
      await adopt(
        { ...parts, subject: null },
        registry,
        { registry: registryName, repository },
        { reference: tag, tag },
        ctx,
      );
    }
  }
  for (const place of known.keys()) {
    const colon = place.lastIndexOf(':');
    const [repository, tag] = [place.slice(0, colon), place.slice(colon + 1)];
    // The tag may have been pushed in the meantime.
    if ((await api.digest(`${registryName}/${repository}`, tag, ctx)) === null)
      await content.deleteTag(registry.id, repository, tag, null);
  }
  for (const { repository, digest } of await content.untaggedManifests(registry.id)) {
    if ((await api.digest(`${registryName}/${repository}`, digest, ctx)) === null)
      await content.deleteManifest(registry.id, repository, digest, null);
  }
}

/** Writes the rows for a reference. @returns its digest; null where the server has no such manifest */
async function adopt(
  parts: MirrorParts & { subject: string | null },
  registry: ServedRegistry,
  name: RepositoryName,
  { reference, tag }: { reference: string; tag: string | null },
  ctx: DriverContext,
): Promise<string | null> {
  const found = await parts.api.manifest(`${name.registry}/${name.repository}`, reference, ctx);
  if (!found) return null;
  const place = { repository: name.repository, reference };
  const manifest = parseManifest(found.content, found.media_type, place);
  for (const child of manifest.manifests) await adopt(parts, registry, name, { reference: child, tag: null }, ctx);
  const sizes = sizesIn(found.content);
  await parts.content.adoptManifest(
    registry.id,
    { ...manifest, tags: tag === null ? [] : [tag] },
    sizes,
    parts.subject,
  );
  return manifest.digest;
}

/** Sizes of layers and configuration from the manifest, which the server has verified. */
function sizesIn(content: Buffer): Map<string, number> {
  type Descriptor = { digest?: unknown; size?: unknown } | null;
  type Manifest = { config?: Descriptor; layers?: Descriptor[] | null; manifests?: Descriptor[] | null };
  const json = JSON.parse(content.toString('utf8')) as Manifest;
  const all = [json.config, ...(json.layers ?? []), ...(json.manifests ?? [])];
  return new Map(
    all.flatMap((one) =>
      typeof one?.digest === 'string' && Number.isSafeInteger(one.size) ? [[one.digest, one.size as number]] : [],
    ),
  );
}
