// Interning of strings that many objects have in common.
import type { StoredObject } from './stored_object';

export interface SharedTexts {
  share(object: StoredObject): void;
}

const TEXTS_MAX = 10_000;
const LENGTH_MAX = 200;

export function openSharedTexts(): SharedTexts {
  const texts = new Map<string, string>();
  const shared = (text: string): string => {
    const known = texts.get(text);
    if (known !== undefined) return known;
    if (text.length > LENGTH_MAX) return text;
    if (texts.size >= TEXTS_MAX) texts.clear();
    texts.set(text, text);
    return text;
  };
  return {
    share(object) {
      object.zone_id = shared(object.zone_id);
      object.site = shared(object.site);
      for (const name in object.headers) {
        const value = object.headers[name];
        if (typeof value === 'string' && !UNIQUE.has(name)) object.headers[name] = shared(value);
      }
    },
  };
}

/** Header fields whose values differ from object to object. */
const UNIQUE = new Set(['etag', 'last-modified', 'content-length', 'x-request-id', 'location']);
