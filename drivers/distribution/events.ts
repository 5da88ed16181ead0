// Notifications of a Distribution server (distribution.github.io/distribution/about/notifications): what happened to
// its images, at least once, and lost where the server ends before it has delivered them.

export interface RegistryEvent {
  action: 'push' | 'pull' | 'delete';
  /** Name of the repository, with its registry. */
  name: string;
  digest: string;
  /** null: a layer, or a manifest by its digest. */
  tag: string | null;
  isManifest: boolean;
  /** Subject of the token with which it was done. */
  actor: string;
}

const EVENTS_MAX = 10_000;

/** What is none of these is passed over: the server also tells of mounts. */
export function parseEvents(body: Buffer): RegistryEvent[] {
  const { events } = JSON.parse(body.toString('utf8')) as { events?: unknown };
  if (!Array.isArray(events) || events.length > EVENTS_MAX) return [];
  return events.flatMap((event: unknown) => parseEvent(event) ?? []);
}

function parseEvent(event: unknown): RegistryEvent | null {
  const { action, target, actor } = objectOf(event);
  const { repository, digest, tag, mediaType } = objectOf(target);
  if (action !== 'push' && action !== 'pull' && action !== 'delete') return null;
  if (typeof repository !== 'string' || typeof digest !== 'string') return null;
  const { name } = objectOf(actor);
  return {
    ...{ action, name: repository, digest },
    tag: typeof tag === 'string' && tag !== '' ? tag : null,
    // The deletion of a manifest names no media type, and that of a layer neither.
    isManifest: typeof mediaType === 'string' && /manifest|image\.index/.test(mediaType),
    actor: typeof name === 'string' ? name : '',
  };
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
