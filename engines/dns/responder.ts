// From a query message to its response: zone selection, access control and counting.
import { SERVED_TYPES } from '../../core/protocols/dns_records/types';
import type { CountersByZone, ZoneCounters } from './nameserver';
import { answerFrom, RCODE, type Answer, type Answered, type AliasLookup } from './answer';
import { openCookies, type Cookies } from './wire/cookies';
import {
  isQuery,
  readQuery,
  writeError,
  writeResponse,
  writeTransfer,
  type Malformed,
  type Query,
} from './wire/message';
import { keyOfLabels } from './wire/names';
import {
  newPacketKey,
  openPacketCache,
  prepare,
  readPacketKey,
  responseFrom,
  type PacketCache,
  type PacketKey,
  type Prepared,
} from './packet_cache';
import { TYPE, typeName } from './wire/rdata';
import { openResponseRate, type RateVerdict, type ResponseRate } from './response_rate';
import { transferOf } from './transfer';
import { readTsig, signMessage, TSIG_BYTES, type TsigKey, type TsigState } from './wire/tsig';
import { openZoneTable, type ServedZone, type ZoneTable } from './zone_table';

export type Transport = 'udp' | 'tcp';

const CLASS_IN = 1;
const CLASS_ANY = 255;
const COUNTED_TYPES = new Set<string>(SERVED_TYPES);
const COUNTED_TYPES_OTHER = 'OTHER';

export interface Responder {
  /** @returns null where no response is to be sent; several messages for a transfer */
  respond(message: Buffer, address: string, transport: Transport): Buffer | Buffer[] | null;
  zones: ZoneTable;
  takeCounters(): CountersByZone;
}

interface Parts {
  zones: ZoneTable;
  cookies: Cookies;
  rate: ResponseRate;
  lookUpAlias: AliasLookup;
  /** Whether the current answer has addresses of an ALIAS, which change independently of the zone. */
  usesAlias: boolean;
  transfers: TransferRights;
  counters: CountersByZone;
  /** Incremented when the counters are taken. */
  epoch: number;
  cache: PacketCache;
  key: PacketKey;
}

/** Transfer permissions: clients with the key; without a key, clients with these addresses. */
export interface TransferRights {
  key: TsigKey | null;
  addresses: readonly string[];
}

interface ResponderOptions {
  responsesPerSecond: number;
  lookUpAlias: AliasLookup;
  transfers: TransferRights;
  /** Secret of DNS cookies; default: random. */
  cookieSecret?: Buffer;
  /** Size limit of the packet cache. */
  cacheBytesMax?: number;
}

export function openResponder({
  responsesPerSecond,
  lookUpAlias,
  transfers,
  cookieSecret,
  cacheBytesMax,
}: ResponderOptions): Responder {
  const parts: Parts = {
    zones: openZoneTable(),
    cookies: openCookies(cookieSecret),
    rate: openResponseRate(responsesPerSecond),
    lookUpAlias(target) {
      parts.usesAlias = true;
      return lookUpAlias(target);
    },
    usesAlias: false,
    transfers,
    counters: new Map(),
    epoch: 0,
    cache: openPacketCache(cacheBytesMax),
    key: newPacketKey(),
  };
  return {
    zones: parts.zones,
    respond: (message, address, transport) => respond(parts, message, address, transport),
    takeCounters() {
      const taken = parts.counters;
      parts.counters = new Map();
      parts.epoch += 1;
      return taken;
    },
  };
}

function respond(parts: Parts, message: Buffer, address: string, transport: Transport): Buffer | Buffer[] | null {
  const { key } = parts;
  if (!readPacketKey(message, transport === 'tcp', key)) return respondUnusual(parts, message, address, transport);
  const cookie = key.cookieEnd ? message.subarray(key.cookieStart, key.cookieEnd) : null;
  const verdict = judge(parts, cookie, address, transport);
  if (verdict === 'drop') return null;
  const reply = cookie && parts.cookies.reply(cookie, address);
  const prepared = verdict === 'answer' ? parts.cache.find(key) : null;
  const response = prepared && responseFrom(prepared, message, key, reply);
  if (response) {
    countPrepared(parts, prepared);
    return response;
  }
  const query = readQuery(message);
  if (!query || !isQuery(query))
    return query && verdict === 'answer' ? writeError(query, errorFor(query, transport)) : null;
  if (verdict === 'truncate') return writeLimited(query, { transport, cookie: reply });
  if (isTransfer(query)) return transfer(parts, query, null, { transport, cookie: reply }, address);
  return answerQuery(parts, query, { transport, cookie: reply }, message);
}

/** Handles queries with several additional records or rare options, and malformed messages. */
function respondUnusual(
  parts: Parts,
  message: Buffer,
  address: string,
  transport: Transport,
): Buffer | Buffer[] | null {
  const query = readQuery(message);
  if (!query) return null;
  const cookie = (isQuery(query) && query.edns?.cookie) || null;
  const verdict = judge(parts, cookie, address, transport);
  if (!isQuery(query)) return verdict === 'answer' ? writeError(query, errorFor(query, transport)) : null;
  if (verdict === 'drop') return null;
  const way: Way = { transport, cookie: cookie && parts.cookies.reply(cookie, address) };
  if (verdict === 'truncate') return writeLimited(query, way);
  const tsig = parts.transfers.key ? readTsig(message, parts.transfers.key) : null;
  if (tsig === 'malformed') return writeError(query, { ...way, rcode: RCODE.FORMERR });
  if (tsig?.error) return signMessage(writeError(query, { ...way, rcode: RCODE.NOTAUTH }), tsig);
  if (isTransfer(query)) return transfer(parts, query, tsig, way, address);
  if (tsig) return signMessage(answerQuery(parts, query, { ...way, reserve: TSIG_BYTES }, null), tsig);
  return answerQuery(parts, query, way, null);
}

/** Rate limit, applied before any look-up or signature for a client whose address may be forged. */
function judge({ cookies, rate }: Parts, cookie: Buffer | null, address: string, transport: Transport): RateVerdict {
  if (transport === 'tcp' || (cookie !== null && cookies.isValid(cookie, address))) return 'answer';
  return rate.judge(address);
}

function writeLimited(query: Query, way: Way): Buffer {
  return writeError(query, { ...way, rcode: way.cookie ? RCODE.BADCOOKIE : RCODE.NOERROR, truncate: !way.cookie });
}

function isTransfer({ type, qclass, edns }: Query): boolean {
  return (type === TYPE.AXFR || type === TYPE.IXFR) && qclass === CLASS_IN && (edns?.version ?? 0) === 0;
}

function transfer(parts: Parts, query: Query, tsig: TsigState | null, way: Way, address: string): Buffer | Buffer[] {
  const sign = (message: Buffer): Buffer => (tsig ? signMessage(message, tsig) : message);
  const { key, addresses } = parts.transfers;
  const served = parts.zones.find(keyOfLabels(query.labels));
  const isAllowed = key ? tsig !== null : addresses.includes(address);
  if (!served || !isAllowed) return sign(writeError(query, { ...way, rcode: served ? RCODE.REFUSED : RCODE.NOTAUTH }));
  const messages = transferOf(parts.zones.zoneOf(served), parts.lookUpAlias);
  // Over UDP, the SOA alone makes the client retry over TCP (RFC 1995 §4).
  const [soa] = messages[0] as Answered[];
  if (way.transport === 'udp' && query.type === TYPE.AXFR)
    return sign(writeError(query, { ...way, rcode: RCODE.REFUSED }));
  if (way.transport === 'udp') return sign(writeTransfer(query, [soa as Answered]));
  return messages.map((answers) => sign(writeTransfer(query, answers)));
}

function errorFor({ opcode }: Malformed, transport: Transport): { rcode: number; transport: Transport; cookie: null } {
  return { rcode: opcode === 0 ? RCODE.FORMERR : RCODE.NOTIMP, transport, cookie: null };
}

interface Way {
  transport: Transport;
  cookie: Buffer | null;
  /** Bytes to reserve for a signature after the message. */
  reserve?: number;
}

/** @param message of a common query, whose response is cached; null for others */
function answerQuery(parts: Parts, query: Query, way: Way, message: Buffer | null): Buffer {
  const { edns, qclass, type, labels } = query;
  if (edns && edns.version !== 0) return writeError(query, { ...way, rcode: RCODE.BADVERS });
  if (qclass !== CLASS_IN && qclass !== CLASS_ANY) return writeError(query, { ...way, rcode: RCODE.REFUSED });
  const refusal = refusalOfType(type);
  if (refusal !== null) return writeError(query, { ...way, rcode: refusal });
  const served = parts.zones.enclosing(labels, type);
  if (!served) return writeError(query, { ...way, rcode: RCODE.REFUSED });
  const response = message ? prepareResponse(parts, served, query, way, message) : null;
  if (response) return response;
  const composed = compose(parts, served, query, way);
  count(parts, served.id, type, composed.rcode);
  return composed.response;
}

/** Response code for query types and meta types that names cannot have records of (RFC 6895 §3.1); else null. */
function refusalOfType(type: number): number | null {
  if (type === TYPE.AXFR || type === TYPE.IXFR) return RCODE.REFUSED;
  if (type === TYPE.MAILA || type === TYPE.MAILB) return RCODE.NOTIMP;
  return type === TYPE.OPT || (type >= TYPE.NXNAME && type < TYPE.IXFR) ? RCODE.FORMERR : null;
}

/** @returns null where the response cannot be cached, or the cookie does not fit */
function prepareResponse(parts: Parts, served: ServedZone, query: Query, way: Way, message: Buffer): Buffer | null {
  const { key } = parts;
  const { type, labels } = query;
  const { version } = served;
  const { response, rcode } = compose(parts, served, query, { ...way, cookie: null });
  // Nonexistent names are mostly random: hardly any is queried again.
  if (rcode === RCODE.NXDOMAIN && !way.cookie) {
    count(parts, served.id, type, rcode);
    return response;
  }
  const prepared = prepare({ key, served, version, response, type, rcode });
  // A DS at the apex belongs to the parent zone, and the response depends on both zones.
  const isAtApex = type === TYPE.DS && labels.length === served.apex.length;
  if (rcode === RCODE.NOERROR && !parts.usesAlias && !isAtApex) parts.cache.keep(prepared, key);
  const sent = responseFrom(prepared, message, key, way.cookie);
  if (sent) countPrepared(parts, prepared);
  return sent;
}

function compose(parts: Parts, served: ServedZone, query: Query, way: Way): { response: Buffer; rcode: number } {
  const zone = parts.zones.zoneOf(served);
  const question = { zone, type: query.type, dnssec: query.edns?.dnssec ?? false, lookUpAlias: parts.lookUpAlias };
  parts.usesAlias = false;
  const answer: Answer = answerFrom(question, query.labels);
  if (answer.rcode === RCODE.SERVFAIL)
    return { response: writeError(query, { ...way, rcode: answer.rcode }), rcode: answer.rcode };
  return { response: writeResponse(query, answer, way), rcode: answer.rcode };
}

const NOTHING: ZoneCounters = { queries: 0, noerror: 0, nxdomain: 0, servfail: 0 };

function count(parts: Parts, zoneId: string, type: number, rcode: number): void {
  increment(counterOf(parts, zoneId, type), rcode);
}

function countPrepared(parts: Parts, prepared: Prepared): void {
  if (!prepared.counted || prepared.epoch !== parts.epoch) {
    prepared.counted = counterOf(parts, prepared.served.id, prepared.type);
    prepared.epoch = parts.epoch;
  }
  increment(prepared.counted, prepared.rcode);
}

function counterOf({ counters }: Parts, zoneId: string, type: number): ZoneCounters {
  const name = typeName(type);
  const label = COUNTED_TYPES.has(name) ? name : COUNTED_TYPES_OTHER;
  const zone = counters.get(zoneId) ?? new Map<string, ZoneCounters>();
  if (!zone.size) counters.set(zoneId, zone);
  const counted = zone.get(label) ?? { ...NOTHING };
  zone.set(label, counted);
  return counted;
}

function increment(counted: ZoneCounters, rcode: number): void {
  counted.queries += 1;
  if (rcode === RCODE.NOERROR) counted.noerror += 1;
  else if (rcode === RCODE.NXDOMAIN) counted.nxdomain += 1;
  else if (rcode === RCODE.SERVFAIL) counted.servfail += 1;
}
