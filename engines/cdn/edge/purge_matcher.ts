import type { PurgeSpec } from '../cdn';

/** Whether an object matches a purge. A path without a query string matches it with any query string. */
export function purgeMatcher({
  type,
  values,
}: PurgeSpec): (object: { key: string; tags: readonly string[] }) => boolean {
  if (type === 'all') return () => true;
  if (type === 'tags') return ({ tags }) => values.some((tag) => tags.includes(tag));
  if (type === 'prefixes') return ({ key }) => values.some((prefix) => key.startsWith(prefix));
  return ({ key }) => values.some((url) => key === url || (!url.includes('?') && key.startsWith(`${url}?`)));
}
