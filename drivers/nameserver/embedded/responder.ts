// From a message to its response: which zone, whether the client may have an answer, and what is counted.
import type { CountersByZone, ZoneCounters } from '../../nameserver';
import { answerFrom, RCODE, type Answer, type Answered, type AliasLookup } from './answer';
import { openCookies, type Cookies } from './cookies';
import { isQuery, readQuery, writeError, writeResponse, writeTransfer, type Malformed, type Query } from './message';
import { keyOfLabels, type Labels } from './names';
import { TYPE, typeName } from './rdata';
import { openResponseRate, type ResponseRate } from './response_rate';
import { transferOf } from './transfer';
import { readTsig, signMessage, TSIG_BYTES, type TsigKey, type TsigState } from './tsig';
import type { Zone } from './zone';

export type Transport = 'udp' | 'tcp';

const CLASS_IN = 1;
const CLASS_ANY = 255;
const SERVED_TYPES = new Set(['A', 'AAAA', 'CAA', 'CNAME', 'MX', 'NS', 'PTR', 'SRV', 'TXT']);
const COUNTED_TYPES_OTHER = 'OTHER';
const CACHED_MAX = 50_000;

export interface Responder {
  /** @returns null where nothing is to be sent; several messages for a transfer */
  respond(message: Buffer, address: string, transport: Transport): Buffer | Buffer[] | null;
  /** Zones by the key of their name; whoever changes one puts a new object in its place. */
  zones: Map<string, Zone>;
  takeCounters(): CountersByZone;
}

interface Parts {
  zones: Map<string, Zone>;
  cookies: Cookies;
  rate: ResponseRate;
  lookUpAlias: AliasLookup;
  transfers: TransferRights;
  counters: CountersByZone;
  /** Responses over UDP to messages that came before, by their bytes behind the id. */
  cache: Map<string, Cached>;
}

interface Cached {
  zone: Zone;
  response: Buffer;
  rcode: number;
  type: number;
}

/** Who may have whole zones: whoever has the key; without a key, these addresses. */
export interface TransferRights {
  key: TsigKey | null;
  addresses: readonly string[];
}

export interface ResponderOptions {
  responsesPerSecond: number;
  lookUpAlias: AliasLookup;
  transfers: TransferRights;
}

export function openResponder({ responsesPerSecond, lookUpAlias, transfers }: ResponderOptions): Responder {
  const parts: Parts = {
    zones: new Map(),
    cookies: openCookies(),
    rate: openResponseRate(responsesPerSecond),
    lookUpAlias,
    transfers,
    counters: new Map(),
    cache: new Map(),
  };
  return {
    zones: parts.zones,
    respond: (message, address, transport) => respond(parts, message, address, transport),
    takeCounters() {
      const taken = parts.counters;
      parts.counters = new Map();
      return taken;
    },
  };
}

function respond(parts: Parts, message: Buffer, address: string, transport: Transport): Buffer | Buffer[] | null {
  const read = readQuery(message);
  if (!read) return null;
  if (!isQuery(read)) return limited(parts, address, transport, () => writeError(read, errorFor(read, transport)));
  const cookie = read.edns?.cookie ?? null;
  const reply = cookie && parts.cookies.reply(cookie, address);
  const isKnown = transport === 'tcp' || (cookie !== null && parts.cookies.isValid(cookie, address));
  if (!isKnown) {
    const verdict = parts.rate.judge(address);
    if (verdict === 'drop') return null;
    // Nothing was looked up or signed for it.
    if (verdict === 'truncate') {
      const rcode = cookie ? RCODE.BADCOOKIE : RCODE.NOERROR;
      return writeError(read, { rcode, transport, cookie: reply, truncate: !cookie });
    }
  }
  const tsig = parts.transfers.key ? readTsig(message, parts.transfers.key) : null;
  const way: Way = { transport, cookie: reply };
  if (tsig === 'malformed') return writeError(read, { ...way, rcode: RCODE.FORMERR });
  if (tsig?.error) return signMessage(writeError(read, { ...way, rcode: RCODE.NOTAUTH }), tsig);
  if (isTransfer(read)) return transfer(parts, read, tsig, way, address);
  if (tsig) return signMessage(answerQuery(parts, read, message, { ...way, reserve: TSIG_BYTES }), tsig);
  return answerQuery(parts, read, message, way);
}

function isTransfer({ type, qclass, edns }: Query): boolean {
  return (type === TYPE.AXFR || type === TYPE.IXFR) && qclass === CLASS_IN && (edns?.version ?? 0) === 0;
}

function transfer(parts: Parts, query: Query, tsig: TsigState | null, way: Way, address: string): Buffer | Buffer[] {
  const sign = (message: Buffer): Buffer => (tsig ? signMessage(message, tsig) : message);
  const { key, addresses } = parts.transfers;
  const zone = parts.zones.get(keyOfLabels(query.labels));
  const isAllowed = key ? tsig !== null : addresses.includes(address);
  if (!zone || !isAllowed) return sign(writeError(query, { ...way, rcode: zone ? RCODE.REFUSED : RCODE.NOTAUTH }));
  const messages = transferOf(zone, parts.lookUpAlias);
  // Over UDP, the SOA alone sends the client to TCP (RFC 1995 §4).
  const [soa] = messages[0] as Answered[];
  if (way.transport === 'udp' && query.type === TYPE.AXFR)
    return sign(writeError(query, { ...way, rcode: RCODE.REFUSED }));
  if (way.transport === 'udp') return sign(writeTransfer(query, [soa as Answered]));
  return messages.map((answers) => sign(writeTransfer(query, answers)));
}

function limited(parts: Parts, address: string, transport: Transport, make: () => Buffer): Buffer | null {
  return transport === 'udp' && parts.rate.judge(address) !== 'answer' ? null : make();
}

function errorFor({ opcode }: Malformed, transport: Transport): { rcode: number; transport: Transport; cookie: null } {
  return { rcode: opcode === 0 ? RCODE.FORMERR : RCODE.NOTIMP, transport, cookie: null };
}

interface Way {
  transport: Transport;
  cookie: Buffer | null;
  /** Bytes for a signature behind the message. */
  reserve?: number;
}

function answerQuery(parts: Parts, query: Query, message: Buffer, way: Way): Buffer {
  const { edns, qclass, type } = query;
  if (edns && edns.version !== 0) return writeError(query, { ...way, rcode: RCODE.BADVERS });
  if (qclass !== CLASS_IN && qclass !== CLASS_ANY) return writeError(query, { ...way, rcode: RCODE.REFUSED });
  if (type === TYPE.AXFR || type === TYPE.IXFR || type === TYPE.OPT)
    return writeError(query, { ...way, rcode: type === TYPE.OPT ? RCODE.FORMERR : RCODE.REFUSED });
  const zone = zoneOf(parts, query.labels, type);
  if (!zone) return writeError(query, { ...way, rcode: RCODE.REFUSED });
  const isPlain = way.transport === 'udp' && !way.cookie && !way.reserve;
  const cached = isPlain ? fromCache(parts, query, message) : null;
  if (cached) return cached;
  const { response, rcode } = compose(parts, zone, query, way);
  count(parts, zone.id, type, rcode);
  if (isPlain && rcode !== RCODE.SERVFAIL && !hasAlias(zone, query.labels))
    toCache(parts, query, message, { zone, response, rcode, type });
  return response;
}

function compose(parts: Parts, zone: Zone, query: Query, way: Way): { response: Buffer; rcode: number } {
  const question = { zone, type: query.type, dnssec: query.edns?.dnssec ?? false, lookUpAlias: parts.lookUpAlias };
  const answer: Answer = answerFrom(question, query.labels);
  if (answer.rcode === RCODE.SERVFAIL)
    return { response: writeError(query, { ...way, rcode: answer.rcode }), rcode: answer.rcode };
  return { response: writeResponse(query, answer, way), rcode: answer.rcode };
}

/** The zone with the longest name that the question is in; for a DS at its apex, the one above (RFC 4035 §3.1.4.1). */
function zoneOf({ zones }: Parts, labels: Labels, type: number): Zone | null {
  let found: Zone | null = null;
  for (let from = 0; from < labels.length; from += 1) {
    const zone = zones.get(keyOfLabels(labels.slice(from)));
    if (!zone) continue;
    found ??= zone;
    if (!(type === TYPE.DS && from === 0)) return zone;
  }
  return found;
}

function hasAlias({ nodes }: Zone, labels: Labels): boolean {
  return nodes.get(keyOfLabels(labels))?.alias != null;
}

/** The message behind its id, its question in lower case: what comes again is answered with the same bytes. */
function cacheKey({ question, labels }: Query, message: Buffer): string {
  const end = 12 + question.length;
  return `${message.toString('latin1', 2, 12)}${keyOfLabels(labels)}\0${message.toString('latin1', end - 4)}`;
}

function fromCache(parts: Parts, query: Query, message: Buffer): Buffer | null {
  const known = parts.cache.get(cacheKey(query, message));
  if (!known || parts.zones.get(keyOfLabels(known.zone.apex)) !== known.zone) return null;
  count(parts, known.zone.id, known.type, known.rcode);
  const response = Buffer.from(known.response);
  response.writeUInt16BE(query.id, 0);
  query.question.copy(response, 12);
  return response;
}

function toCache({ cache }: Parts, query: Query, message: Buffer, entry: Cached): void {
  // All at once: what is asked for often is back soon.
  if (cache.size >= CACHED_MAX) cache.clear();
  cache.set(cacheKey(query, message), entry);
}

const NOTHING: ZoneCounters = { queries: 0, noerror: 0, nxdomain: 0, servfail: 0 };

function count({ counters }: Parts, zoneId: string, type: number, rcode: number): void {
  const name = typeName(type);
  const label = SERVED_TYPES.has(name) ? name : COUNTED_TYPES_OTHER;
  const zone = counters.get(zoneId) ?? new Map<string, ZoneCounters>();
  if (!zone.size) counters.set(zoneId, zone);
  const counted = zone.get(label) ?? { ...NOTHING };
  zone.set(label, counted);
  counted.queries += 1;
  if (rcode === RCODE.NOERROR) counted.noerror += 1;
  else if (rcode === RCODE.NXDOMAIN) counted.nxdomain += 1;
  else if (rcode === RCODE.SERVFAIL) counted.servfail += 1;
}
