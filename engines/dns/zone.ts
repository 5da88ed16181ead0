// A zone in memory: record sets by name, so that a query takes a few look-ups.
import { groupBy } from '../../core/group_by';
import type { ZoneRecord, ZoneSpec } from './nameserver';
import { compareNames, keyOfLabels, labelsOfName, type Labels } from './wire/names';
import { encodeNameRdata, encodeRecord, encodeSoa, TYPE } from './wire/rdata';
import { openSigner, type Signer } from './signer';

/** All records of one name and type. Immutable: signatures are cached by object. */
export interface RecordSet {
  type: number;
  /** In seconds; the lowest of the records (RFC 2181 §5.2). */
  ttl: number;
  /** In canonical order (RFC 4034 §6.3). */
  rdata: Buffer[];
}

export interface Node {
  labels: Labels;
  /** Empty for an empty non-terminal (RFC 4592 §2.2.2). */
  sets: Map<number, RecordSet>;
  /** Target of an ALIAS, whose addresses answer A and AAAA queries. */
  alias: { target: string; ttl: number; sets: Map<number, RecordSet> } | null;
  /** Last NSEC set made for the name, kept while its content is unchanged. */
  denial: RecordSet | null;
  /** The NSEC set is valid for the lifetime of this zone version. */
  isDenialKnown: boolean;
}

export interface Zone {
  id: string;
  spec: Pick<ZoneSpec, 'name' | 'soa'>;
  apex: Labels;
  nodes: Map<string, Node>;
  /** Names with records in canonical order; names below a delegation do not belong to the zone (RFC 4034 §4.1.1). */
  chain: Node[];
  signer: Signer | null;
}

/** @param before previous version of the zone: unchanged sets keep their signatures */
export function buildZone(id: string, spec: ZoneSpec, before: Zone | null): Zone {
  const apex = labelsOfName(spec.name);
  const signer = openSigner(spec, before?.signer ?? null);
  const { name, soa } = spec;
  const zone: Zone = { id, spec: { name, soa }, apex, nodes: new Map(), chain: [], signer };
  addNode(zone, apex, before);
  for (const [key, records] of groupByName(spec)) {
    const node = addNode(zone, labelsOfName(key), before);
    for (const [type, found] of groupByType(records)) addSet(node, type, found, spec, before);
  }
  addApexSets(zone, spec, before);
  if (signer) zone.chain = chainOf(zone);
  return zone;
}

/** The node of a name; creates it and its ancestors below the apex. */
function addNode(zone: Zone, labels: Labels, before: Zone | null): Node {
  const key = keyOfLabels(labels);
  const known = zone.nodes.get(key);
  if (known) return known;
  const denial = before?.nodes.get(key)?.denial ?? null;
  const made: Node = { labels, sets: new Map(), alias: null, denial, isDenialKnown: false };
  zone.nodes.set(key, made);
  if (labels.length > zone.apex.length) addNode(zone, labels.slice(1), before);
  return made;
}

function groupByName({ name: apex, records }: ZoneSpec): Map<string, ZoneRecord[]> {
  return groupBy(records, ({ name }) => (name === '@' ? apex : `${name}.${apex}`));
}

function groupByType(records: ZoneRecord[]): Map<string, ZoneRecord[]> {
  return groupBy(records, ({ type }) => type);
}

function addSet(node: Node, type: string, records: ZoneRecord[], spec: ZoneSpec, before: Zone | null): void {
  const ttl = Math.min(...records.map((record) => record.ttl ?? spec.default_ttl));
  const [first] = records as [ZoneRecord];
  if (type === 'ALIAS') {
    node.alias = { target: first.value, ttl, sets: new Map() };
    return;
  }
  const rdata = records.map((record) => encodeRecord(record) as Buffer);
  reuseSet(node, { type: TYPE[type as keyof typeof TYPE], ttl, rdata }, before);
}

function addApexSets(zone: Zone, spec: ZoneSpec, before: Zone | null): void {
  const { apex, signer } = zone;
  const node = zone.nodes.get(keyOfLabels(apex)) as Node;
  const { default_ttl: ttl, soa } = spec;
  reuseSet(node, { type: TYPE.SOA, ttl, rdata: [encodeSoa(spec)] }, before);
  const others = node.sets.get(TYPE.NS)?.rdata ?? [];
  const servers = [...spec.name_servers.map(encodeNameRdata), ...others];
  reuseSet(node, { type: TYPE.NS, ttl, rdata: servers }, before);
  for (const { type, rdata } of signer?.keySets ?? []) reuseSet(node, { type, ttl: soa.minimum, rdata }, before);
}

function reuseSet(node: Node, made: RecordSet, before: Zone | null): void {
  const rdata = [...made.rdata]
    .sort((a, b) => Buffer.compare(a, b))
    .filter((data, i, all) => !all[i - 1]?.equals(data));
  const known = before?.nodes.get(keyOfLabels(node.labels))?.sets.get(made.type);
  const isSame =
    known?.ttl === made.ttl &&
    known.rdata.length === rdata.length &&
    rdata.every((data, i) => data.equals(known.rdata[i] as Buffer));
  node.sets.set(made.type, isSame ? known : { ...made, rdata });
}

function chainOf(zone: Zone): Node[] {
  const owners = [...zone.nodes.values()].filter(
    (node) => (node.sets.size > 0 || node.alias) && !cutAbove(zone, node.labels),
  );
  return owners.sort((a, b) => compareNames(a.labels, b.labels));
}

/** The delegation above a name, excluding the name itself. */
export function cutAbove(zone: Zone, labels: Labels): Node | null {
  for (let depth = zone.apex.length + 1; depth < labels.length; depth += 1) {
    const node = zone.nodes.get(keyOfLabels(labels.slice(labels.length - depth)));
    if (!node) return null;
    if (node.sets.has(TYPE.NS)) return node;
  }
  return null;
}

/** The last name of the chain at or before the given one, and its successor. */
export function neighboursInChain(zone: Zone, labels: Labels): { node: Node; next: Node } {
  let low = 0;
  let high = zone.chain.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareNames((zone.chain[middle] as Node).labels, labels) <= 0) low = middle + 1;
    else high = middle;
  }
  const index = Math.max(low - 1, 0);
  return { node: zone.chain[index] as Node, next: zone.chain[(index + 1) % zone.chain.length] as Node };
}
