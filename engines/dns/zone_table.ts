// Served zones by name. Each is stored as text of a few kilobytes, and built on its first query: of many zones, few are
// queried at a time.
import type { ZoneSpec } from './nameserver';
import { keyOfLabels, labelsOfName, type Labels } from './wire/names';
import { TYPE } from './wire/rdata';
import { buildZone, type Zone } from './zone';

/** Records of built zones; beyond this limit, zones not queried recently are reduced to their text. */
const READY_RECORDS_MAX = 400_000;

export interface ServedZone {
  id: string;
  apex: Labels;
  /** Incremented when cached responses become invalid. */
  version: number;
  /** JSON of its `ZoneSpec`. */
  text: Buffer;
  ready: Zone | null;
}

export interface ZoneTable {
  find(key: string): ServedZone | null;
  /** The zone with the longest matching name; for a DS at its apex, the parent (RFC 4035 §3.1.4.1). */
  enclosing(labels: Labels, type: number): ServedZone | null;
  /** Serves the zone, and replaces another zone of the same name. */
  put(id: string, name: string, text: string): void;
  remove(id: string): void;
  zoneOf(served: ServedZone): Zone;
}

interface Table {
  byName: Map<string, ServedZone>;
  byId: Map<string, ServedZone>;
}

export function openZoneTable(readyRecordsMax = READY_RECORDS_MAX): ZoneTable {
  const table: Table = { byName: new Map(), byId: new Map() };
  const { byName, byId } = table;
  const readiness = openReadiness(readyRecordsMax);
  return {
    find: (key) => byName.get(key) ?? null,
    enclosing: (labels, type) => enclosing(byName, labels, type),
    put: (id, name, text) => put(table, id, name, text),
    remove(id) {
      const served = byId.get(id);
      if (served) remove(table, served);
    },
    zoneOf(served) {
      served.ready ??= buildZone(served.id, JSON.parse(served.text.toString()) as ZoneSpec, null);
      readiness.touch(served, served.ready);
      return served.ready;
    },
  };
}

function put(table: Table, id: string, name: string, text: string): void {
  const apex = labelsOfName(name);
  const known = table.byName.get(keyOfLabels(apex));
  if (known?.id === id) {
    known.version += 1;
    known.text = Buffer.from(text);
    // Rebuild at once from the previous version: unchanged record sets keep their signatures.
    if (known.ready) known.ready = buildZone(id, JSON.parse(text) as ZoneSpec, known.ready);
    return;
  }
  if (known) remove(table, known);
  const made: ServedZone = { id, apex, version: 0, text: Buffer.from(text), ready: null };
  table.byName.set(keyOfLabels(apex), made);
  table.byId.set(id, made);
  touchAbove(table, made);
}

function remove(table: Table, served: ServedZone): void {
  served.version += 1;
  table.byId.delete(served.id);
  table.byName.delete(keyOfLabels(served.apex));
  touchAbove(table, served);
}

/** Invalidates parent zones, whose names may now belong to a zone below, or again to the parent. */
function touchAbove({ byName }: Table, { apex }: ServedZone): void {
  for (let from = 1; from < apex.length; from += 1) {
    const above = byName.get(keyOfLabels(apex.slice(from)));
    if (above) above.version += 1;
  }
}

function enclosing(byName: Map<string, ServedZone>, labels: Labels, type: number): ServedZone | null {
  let found: ServedZone | null = null;
  for (let from = 0; from < labels.length; from += 1) {
    const served = byName.get(keyOfLabels(labels.slice(from)));
    if (!served) continue;
    found ??= served;
    if (!(type === TYPE.DS && from === 0)) return served;
  }
  return found;
}

/** Two generations, as in the packet cache: when the young one is full, zones left in the old one are reduced. */
function openReadiness(recordsMax: number): { touch(served: ServedZone, zone: Zone): void } {
  let young = new Set<ServedZone>();
  let old = new Set<ServedZone>();
  let records = 0;
  return {
    touch(served, { nodes }) {
      if (young.has(served)) return;
      old.delete(served);
      records += nodes.size;
      if (records > recordsMax / 2) {
        for (const one of old) one.ready = null;
        old = young;
        young = new Set();
        records = nodes.size;
      }
      young.add(served);
    },
  };
}
