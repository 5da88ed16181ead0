// Notifications of a Distribution server (distribution.github.io/distribution/about/notifications): events of images,
// delivered at least once, or lost if the server ends before their delivery.

export interface RegistryEvent {
  action: 'push' | 'pull' | 'delete';
  /** Name of the repository, including its registry. */
  name: string;
  digest: string;
  /** null: a layer, or a manifest referenced by digest. */
  tag: string | null;
  isManifest: boolean;
  /** Subject of the token of the request. */
  actor: string;
}

const EVENTS_MAX = 10_000;

/** Other events are skipped: the server also reports mounts. */
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
    // A deletion has no media type, neither of a manifest nor of a layer.
    isManifest: typeof mediaType === 'string' && /manifest|image\.index/.test(mediaType),
    actor: typeof name === 'string' ? name : '',
  };
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
