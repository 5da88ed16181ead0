/** Values that were loaded, for a short while. */
interface ExpiringCache<T> {
  /** The value of a key, loaded where it is not known; null is not kept. */
  get(key: string, load: () => Promise<T>): Promise<T>;
  drop(which: (key: string, value: T) => boolean): void;
}

interface Entry<T> {
  value: T;
  until: number;
}

const ENTRIES_MAX = 20_000;

export function expiringCache<T>(maxAgeMs: number): ExpiringCache<T> {
  const entries = new Map<string, Entry<T>>();
  let drops = 0;
  return {
    async get(key, load) {
      const known = entries.get(key);
      if (known && known.until > Date.now()) return known.value;
      const before = drops;
      const value = await load();
      // A load that was under way when something was dropped may have read the old row: it is answered but not kept.
      if (value === null || before !== drops) return value;
      if (entries.size >= ENTRIES_MAX) entries.clear();
      entries.set(key, { value, until: Date.now() + maxAgeMs });
      return value;
    },
    drop(which) {
      drops += 1;
      for (const [key, entry] of entries) if (which(key, entry.value)) entries.delete(key);
    },
  };
}
