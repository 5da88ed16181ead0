// Index of stored objects by address, path and tag, so that a purge only looks at the objects that match it.
import type { PurgeSpec } from '../cdn';
import { purgeMatcher } from '../edge/purge_matcher';
import type { StoredObject } from './stored_object';

export interface ObjectIndex {
  readonly size: number;
  variants(name: string): readonly StoredObject[];
  add(object: StoredObject): void;
  remove(object: StoredObject): boolean;
  /** Marks the object as most recently used. */
  touch(name: string): void;
  /** Least recently used first. */
  oldestFirst(): IterableIterator<readonly StoredObject[]>;
  /** Objects that match a purge. */
  matching(zoneId: string, purge: PurgeSpec): StoredObject[];
}

interface ZoneIndex {
  /** By path, without the query string. */
  paths: Map<string, Members>;
  tags: Map<string, Members>;
}

/** Most entries have one member: a set of one takes a hundred times as much memory. */
type Members = StoredObject | Set<StoredObject>;

const NONE: readonly StoredObject[] = [];

export function openObjectIndex(): ObjectIndex {
  const names = new Map<string, readonly StoredObject[]>();
  const zones = new Map<string, ZoneIndex>();
  return {
    get size() {
      return names.size;
    },
    variants: (name) => names.get(name) ?? NONE,
    add(object) {
      const name = nameOf(object);
      names.set(name, [...(names.get(name) ?? NONE), object]);
      addToZone(zones, object);
    },
    remove(object) {
      const name = nameOf(object);
      const known = names.get(name) ?? NONE;
      if (!known.includes(object)) return false;
      const left = known.filter((one) => one !== object);
      if (left.length) names.set(name, left);
      else names.delete(name);
      removeFromZone(zones, object);
      return true;
    },
    touch(name) {
      const known = names.get(name);
      if (!known) return;
      names.delete(name);
      names.set(name, known);
    },
    oldestFirst: () => names.values(),
    matching(zoneId, purge) {
      const zone = zones.get(zoneId);
      return zone ? matchingIn(zone, purge) : [];
    },
  };
}

export function nameOf({ zone_id, site, key }: Pick<StoredObject, 'zone_id' | 'site' | 'key'>): string {
  return `${zone_id} ${site} ${key}`;
}

function matchingIn({ paths, tags }: ZoneIndex, purge: PurgeSpec): StoredObject[] {
  const { type, values } = purge;
  if (type === 'all') return [...paths.values()].flatMap((members) => membersIn(members));
  if (type === 'tags') return values.flatMap((tag) => membersIn(tags.get(tag)));
  const matches = purgeMatcher(purge);
  const near =
    type === 'urls'
      ? values.map((url) => paths.get(pathOf(url)))
      : [...paths].filter(([path]) => values.some((value) => mayBegin(path, value))).map(([, members]) => members);
  return near.flatMap((members) => membersIn(members).filter(matches));
}

/** Whether an address with this path may start with the prefix, which may extend into the query string. */
function mayBegin(path: string, prefix: string): boolean {
  return path.startsWith(prefix) || prefix.startsWith(`${path}?`);
}

function pathOf(key: string): string {
  const end = key.indexOf('?');
  return end < 0 ? key : key.slice(0, end);
}

function addToZone(zones: Map<string, ZoneIndex>, object: StoredObject): void {
  const zone = zones.get(object.zone_id) ?? { paths: new Map(), tags: new Map() };
  zones.set(object.zone_id, zone);
  addTo(zone.paths, pathOf(object.key), object);
  for (const tag of object.tags) addTo(zone.tags, tag, object);
}

function removeFromZone(zones: Map<string, ZoneIndex>, object: StoredObject): void {
  const zone = zones.get(object.zone_id);
  if (!zone) return;
  removeFrom(zone.paths, pathOf(object.key), object);
  for (const tag of object.tags) removeFrom(zone.tags, tag, object);
  if (!zone.paths.size) zones.delete(object.zone_id);
}

function addTo(map: Map<string, Members>, key: string, object: StoredObject): void {
  const known = map.get(key);
  if (known instanceof Set) known.add(object);
  else map.set(key, known === undefined ? object : new Set([known, object]));
}

function removeFrom(map: Map<string, Members>, key: string, object: StoredObject): void {
  const known = map.get(key);
  if (known === object) map.delete(key);
  if (!(known instanceof Set)) return;
  known.delete(object);
  if (known.size === 0) map.delete(key);
}

function membersIn(members: Members | undefined): StoredObject[] {
  if (members === undefined) return [];
  return members instanceof Set ? [...members] : [members];
}
