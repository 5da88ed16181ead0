import type { PurgeSpec } from '../cdn';

/** Whether an object is meant by a purge. A path without a query string means the path with any. */
export function purgeMatcher({
  type,
  values,
}: PurgeSpec): (object: { key: string; tags: readonly string[] }) => boolean {
  if (type === 'all') return () => true;
  if (type === 'tags') return ({ tags }) => values.some((tag) => tags.includes(tag));
  if (type === 'prefixes') return ({ key }) => values.some((prefix) => key.startsWith(prefix));
  return ({ key }) => values.some((url) => key === url || (!url.includes('?') && key.startsWith(`${url}?`)));
}
