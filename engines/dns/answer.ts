// Answers of a zone: RFC 1034 §4.3.2 with wildcards (RFC 4592), delegations, and DNSSEC proofs (RFC 4035 §3.1).
import { keyOfLabels, type Labels } from './wire/names';
import { TYPE } from './wire/rdata';
import { denialRdata, signaturesOf, type Signer } from './signer';
import { neighboursInChain, cutAbove, type Node, type RecordSet, type Zone } from './zone';

export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  NOTAUTH: 9,
  BADVERS: 16,
  BADCOOKIE: 23,
};

/** A record set in an answer: at its own name, or at a name synthesised from a wildcard. */
export interface Answered {
  owner: Labels;
  set: RecordSet;
  /** In seconds, where it differs from the TTL of the set. */
  ttl?: number;
  signatures: Buffer[];
}

export interface Answer {
  rcode: number;
  isAuthoritative: boolean;
  answers: Answered[];
  authority: Answered[];
  additional: Answered[];
}

/** Addresses of an ALIAS target; null while they are not known. */
export type AliasLookup = (target: string) => { a: Buffer[]; aaaa: Buffer[] } | null;

interface Question {
  zone: Zone;
  type: number;
  /** The client requests DNSSEC records (DO, RFC 3225). */
  dnssec: boolean;
  lookUpAlias: AliasLookup;
}

const CHAIN_MAX = 16;
/** Addresses of an ALIAS target may change at any time. */
const ALIAS_TTL_MAX_S = 60;

/** @param labels of the queried name, in lower case, at or below the apex of the zone */
export function answerFrom(question: Question, labels: Labels): Answer {
  const answer: Answer = { rcode: RCODE.NOERROR, isAuthoritative: true, answers: [], authority: [], additional: [] };
  let name = labels;
  const seen = new Set<string>();
  for (let step = 0; step < CHAIN_MAX; step += 1) {
    const key = keyOfLabels(name);
    if (seen.has(key) || !isBelow(name, question.zone.apex)) return answer;
    seen.add(key);
    const target = answerName(question, name, answer);
    if (!target) return answer;
    name = target;
  }
  return answer;
}

function isBelow(labels: Labels, apex: Labels): boolean {
  if (labels.length < apex.length) return false;
  return apex.every((label, index) => labels[labels.length - apex.length + index] === label);
}

/** Adds the records of one name. @returns the target of a CNAME, to continue with */
function answerName(question: Question, name: Labels, answer: Answer): Labels | null {
  const { zone, type } = question;
  const node = zone.nodes.get(keyOfLabels(name));
  const cut = cutAbove(zone, name) ?? (node && isCut(zone, node) && type !== TYPE.DS ? node : null);
  if (cut) return refer(question, cut, answer);
  if (node) return answerNode(question, node, name, answer);
  const encloser = closestEncloser(zone, name);
  const wildcard = zone.nodes.get(keyOfLabels(['*', ...encloser]));
  if (wildcard) {
    // Prove that no closer name exists, nor the queried one.
    proveAbsence(question, name, answer);
    return answerNode(question, wildcard, name, answer);
  }
  answer.rcode = RCODE.NXDOMAIN;
  addSoa(question, answer);
  proveAbsence(question, name, answer);
  proveAbsence(question, ['*', ...encloser], answer);
  return null;
}

function isCut(zone: Zone, node: Node): boolean {
  return node.sets.has(TYPE.NS) && node.labels.length > zone.apex.length;
}

function closestEncloser(zone: Zone, name: Labels): Labels {
  let labels = name.slice(1);
  while (labels.length > zone.apex.length && !zone.nodes.has(keyOfLabels(labels))) labels = labels.slice(1);
  return labels;
}

function answerNode(question: Question, node: Node, owner: Labels, answer: Answer): Labels | null {
  const { type, zone } = question;
  const alias = node.sets.get(TYPE.CNAME);
  // NSEC and RRSIG may exist beside a CNAME (RFC 4034 §3, §4).
  const isOfDnssec = zone.signer !== null && (type === TYPE.NSEC || type === TYPE.RRSIG);
  if (alias && type !== TYPE.CNAME && type !== TYPE.ANY && !isOfDnssec) {
    add(question, answer.answers, node, owner, alias);
    return targetOf(alias);
  }
  const set = setFor(question, node, answer);
  if (set) {
    add(question, answer.answers, node, owner, set);
    if (TARGET_AT.has(set.type)) addAddresses(question, set, answer, owner);
    return null;
  }
  addSoa(question, answer);
  proveTypes(question, node, answer);
  return null;
}

function setFor(question: Question, node: Node, answer: Answer): RecordSet | undefined {
  const { type, zone } = question;
  if (type === TYPE.ANY) return anySet(node);
  const isOwner = node.sets.size > 0 || node.alias !== null;
  if (zone.signer && isOwner && type === TYPE.NSEC) return denialOf(question, node);
  if (zone.signer && isOwner && type === TYPE.RRSIG) return signatureSet(zone.signer, node);
  return node.sets.get(type) ?? aliasSet(question, node, answer);
}

/** The signatures of one set, as for ANY (RFC 8482 §7). */
function signatureSet(signer: Signer, node: Node): RecordSet | undefined {
  const set = anySet(node);
  return set && { type: TYPE.RRSIG, ttl: set.ttl, rdata: signaturesOf(signer, node.labels, set) };
}

/** ANY is answered with a single set (RFC 8482 §4.1). */
function anySet(node: Node): RecordSet | undefined {
  return node.sets.get(TYPE.SOA) ?? node.sets.values().next().value;
}

function aliasSet({ type, lookUpAlias }: Question, node: Node, answer: Answer): RecordSet | undefined {
  const { alias } = node;
  if (!alias || (type !== TYPE.A && type !== TYPE.AAAA)) return undefined;
  const found = lookUpAlias(alias.target);
  if (!found) answer.rcode = RCODE.SERVFAIL;
  const rdata = (type === TYPE.A ? found?.a : found?.aaaa) ?? [];
  if (!rdata.length) return undefined;
  // Reuse the object for unchanged addresses, so that it is signed once.
  const known = alias.sets.get(type);
  if (known?.rdata === rdata) return known;
  const made = { type, ttl: Math.min(alias.ttl, ALIAS_TTL_MAX_S), rdata };
  alias.sets.set(type, made);
  return made;
}

function targetOf(set: RecordSet): Labels {
  const labels: Labels = [];
  const data = set.rdata[0] as Buffer;
  for (let at = 0; data[at]; at += (data[at] as number) + 1) {
    labels.push(data.toString('latin1', at + 1, at + 1 + (data[at] as number)).toLowerCase());
  }
  return labels;
}

function add({ zone, dnssec }: Question, section: Answered[], node: Node, owner: Labels, set: RecordSet): void {
  const key = keyOfLabels(owner);
  if (section.some((known) => known.set === set && keyOfLabels(known.owner) === key)) return;
  const isSigned = dnssec && set.type !== TYPE.RRSIG;
  const signatures = isSigned && zone.signer ? signaturesOf(zone.signer, node.labels, set) : [];
  section.push({ owner, set, signatures });
}

/** A referral: the name servers of the delegation, their addresses, and the DS or the proof that there is none. */
function refer(question: Question, cut: Node, answer: Answer): null {
  const servers = cut.sets.get(TYPE.NS) as RecordSet;
  // The zone is authoritative for any CNAME before the referral (RFC 1034 §4.3.2), but not for the referral itself.
  answer.isAuthoritative = answer.answers.length > 0;
  answer.authority.push({ owner: cut.labels, set: servers, signatures: [] });
  const digests = cut.sets.get(TYPE.DS);
  if (digests && question.dnssec) add(question, answer.authority, cut, cut.labels, digests);
  else proveTypes(question, cut, answer);
  addAddresses(question, servers, answer, cut.labels);
  return null;
}

/** Bytes before the name in the RDATA of types whose answers have additional records. */
const TARGET_AT = new Map<number, number>([
  [TYPE.NS, 0],
  [TYPE.MX, 2],
  [TYPE.SRV, 6],
  [TYPE.SVCB, 2],
  [TYPE.HTTPS, 2],
]);

/**
 * Adds addresses of the names in the set, as far as the zone has them; glue is not signed. For SVCB and HTTPS also the
 * set of the same type (RFC 9460 §4.1); there, the root is the owner itself (§2.5).
 */
function addAddresses(question: Question, set: RecordSet, answer: Answer, owner: Labels): void {
  const isBinding = set.type === TYPE.SVCB || set.type === TYPE.HTTPS;
  for (const data of set.rdata) {
    const named = targetOf({ ...set, rdata: [data.subarray(TARGET_AT.get(set.type))] });
    const labels = isBinding && !named.length ? owner : named;
    const node = question.zone.nodes.get(keyOfLabels(labels));
    if (!node) continue;
    const isGlue = cutAbove(question.zone, labels) !== null || isCut(question.zone, node);
    for (const type of [TYPE.A, TYPE.AAAA, ...(isBinding ? [set.type] : [])]) {
      const found = node.sets.get(type);
      if (!found || found === set) continue;
      if (isGlue) answer.additional.push({ owner: labels, set: found, signatures: [] });
      else add(question, answer.additional, node, labels, found);
    }
  }
}

/** Adds the SOA with the TTL of negative answers (RFC 2308 §3). */
function addSoa(question: Question, answer: Answer): void {
  const { zone } = question;
  const node = zone.nodes.get(keyOfLabels(zone.apex)) as Node;
  const soa = node.sets.get(TYPE.SOA) as RecordSet;
  add(question, answer.authority, node, zone.apex, soa);
  for (const added of answer.authority) {
    if (added.set === soa) added.ttl = Math.min(soa.ttl, zone.spec.soa.minimum);
  }
}

/** Adds the NSEC of the name, which lists its types. An empty non-terminal is covered by the previous name. */
function proveTypes(question: Question, node: Node, answer: Answer): void {
  const has = node.sets.size > 0 || node.alias !== null;
  if (has) addDenial(question, node, answer);
  else proveAbsence(question, node.labels, answer);
}

/** Adds the NSEC whose span covers a name that does not exist. */
function proveAbsence(question: Question, name: Labels, answer: Answer): void {
  if (!question.dnssec || !question.zone.signer) return;
  addDenial(question, neighboursInChain(question.zone, name).node, answer);
}

function addDenial(question: Question, node: Node, answer: Answer): void {
  const { zone, dnssec } = question;
  if (!dnssec || !zone.signer) return;
  add(question, answer.authority, node, node.labels, denialOf(question, node));
}

/** The NSEC set of a name; the same object while its content is unchanged, so that its signature is reused. */
export function denialOf({ zone, lookUpAlias }: Pick<Question, 'zone' | 'lookUpAlias'>, node: Node): RecordSet {
  if (node.denial && node.isDenialKnown) return node.denial;
  const { next } = neighboursInChain(zone, node.labels);
  const rdata = denialRdata(next.labels, [...typesOf(zone, node, lookUpAlias), TYPE.RRSIG, TYPE.NSEC]);
  const ttl = zone.spec.soa.minimum;
  // Addresses of an ALIAS target, and thereby the types, change independently of the zone.
  node.isDenialKnown = node.alias === null;
  if (node.denial?.ttl === ttl && node.denial.rdata[0]?.equals(rdata)) return node.denial;
  node.denial = { type: TYPE.NSEC, ttl, rdata: [rdata] };
  return node.denial;
}

function typesOf(zone: Zone, node: Node, lookUpAlias: AliasLookup): number[] {
  if (isCut(zone, node)) return [TYPE.NS, ...(node.sets.has(TYPE.DS) ? [TYPE.DS] : [])];
  const found = node.alias && lookUpAlias(node.alias.target);
  const addresses = [...(found?.a.length ? [TYPE.A] : []), ...(found?.aaaa.length ? [TYPE.AAAA] : [])];
  return [...node.sets.keys(), ...addresses];
}
