// The zones that are served, by name.
import { keyOfLabels, type Labels } from './names';
import { TYPE } from './rdata';
import type { Zone } from './zone';

export interface ZoneTable {
  find(key: string): Zone | null;
  /** The zone with the longest name; for a DS at its apex, the one above (RFC 4035 §3.1.4.1). */
  enclosing(labels: Labels, type: number): Zone | null;
  /** Serves the zone, in the place of the one that had its name. */
  put(zone: Zone): void;
  remove(zone: Zone): void;
  values(): Iterable<Zone>;
}

export function openZoneTable(): ZoneTable {
  const zones = new Map<string, Zone>();
  /** Names that a zone answered for so far belong to one below it now, or again to it. */
  const touchAbove = ({ apex }: Zone): void => {
    for (let from = 1; from < apex.length; from += 1) {
      const above = zones.get(keyOfLabels(apex.slice(from)));
      if (above) above.version += 1;
    }
  };
  return {
    find: (key) => zones.get(key) ?? null,
    enclosing(labels, type) {
      let found: Zone | null = null;
      for (let from = 0; from < labels.length; from += 1) {
        const zone = zones.get(keyOfLabels(labels.slice(from)));
        if (!zone) continue;
        found ??= zone;
        if (!(type === TYPE.DS && from === 0)) return zone;
      }
      return found;
    },
    put(zone) {
      const key = keyOfLabels(zone.apex);
      const before = zones.get(key);
      if (before) before.version += 1;
      else touchAbove(zone);
      zones.set(key, zone);
    },
    remove(zone) {
      const key = keyOfLabels(zone.apex);
      if (zones.get(key) !== zone) return;
      zones.delete(key);
      zone.version += 1;
      touchAbove(zone);
    },
    values: () => zones.values(),
  };
}
