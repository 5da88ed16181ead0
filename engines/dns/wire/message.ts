// DNS messages: parsed queries, and encoded responses. The question is echoed byte for byte, so that the case chosen by
// a resolver is preserved (draft-vixie-dnsext-dns0x20), and names that a codec would normalise. Owner names are
// compressed (RFC 1035 §4.1.4), names inside RDATA are not (RFC 3597 §4).
import type { Answer, Answered } from '../answer';
import { COOKIE_OPTION, DNSSEC_OK, PLAIN_UDP_BYTES, readEdns, type Edns } from './edns';
import { keyOfLabels, readQuestionName, type Labels } from './names';
import { TYPE } from './rdata';
import { recordHead } from '../signer';

const HEADER_BYTES = 12;
/** Advertised UDP size, and maximum size of UDP responses: avoids fragmentation (RFC 9715 §3.1). */
const UDP_BYTES_MAX = 1232;
const TCP_BYTES_MAX = 65_535;

const FLAG = {
  response: 0x8000,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  checkingDisabled: 0x0010,
};

export interface Query {
  id: number;
  opcode: number;
  /** RD and CD, which are echoed. */
  echoed: number;
  /** The bytes of the question; empty where there is none. */
  question: Buffer;
  labels: Labels;
  type: number;
  qclass: number;
  edns: Edns | null;
}

/** The part of an invalid message that an error response needs. */
export interface Malformed {
  id: number;
  opcode: number;
  echoed: number;
}

/** @returns null for messages without a response: responses, and messages without a complete header */
export function readQuery(message: Buffer): Query | Malformed | null {
  if (message.length < HEADER_BYTES) return null;
  const flags = message.readUInt16BE(2);
  if (flags & FLAG.response) return null;
  const head: Malformed = {
    id: message.readUInt16BE(0),
    opcode: (flags >> 11) & 0xf,
    echoed: flags & (FLAG.recursionDesired | FLAG.checkingDisabled),
  };
  if (head.opcode !== 0 || message.readUInt16BE(4) !== 1) return head;
  const name = readQuestionName(message, HEADER_BYTES);
  if (!name || name.end + 4 > message.length) return head;
  const edns = readEdns(message, name.end + 4);
  if (edns === 'malformed') return head;
  return {
    ...head,
    question: message.subarray(HEADER_BYTES, name.end + 4),
    labels: name.labels,
    type: message.readUInt16BE(name.end),
    qclass: message.readUInt16BE(name.end + 2),
    edns,
  };
}

interface ResponseOptions {
  rcode: number;
  transport: 'udp' | 'tcp';
  /** Client cookie and server cookie (RFC 7873 §5.2). */
  cookie: Buffer | null;
  /** Sets TC, so that the client retries over TCP. */
  truncate?: boolean;
  /** Bytes that will be appended to the message. */
  reserve?: number;
}

export function isQuery(read: Query | Malformed): read is Query {
  return 'question' in read;
}

/** A response without records: an error, or a truncated response. */
export function writeError(read: Query | Malformed, options: ResponseOptions): Buffer {
  return write(
    read,
    { rcode: options.rcode, isAuthoritative: false, answers: [], authority: [], additional: [] },
    options,
  );
}

/** Over UDP, records that do not fit are omitted: additional records silently, others with TC (RFC 2181 §9). */
export function writeResponse(query: Query, answer: Answer, options: Omit<ResponseOptions, 'rcode'>): Buffer {
  const most = (options.transport === 'tcp' ? TCP_BYTES_MAX : udpLimit(query)) - (options.reserve ?? 0);
  const full = write(query, answer, { ...options, rcode: answer.rcode });
  if (full.length <= most) return full;
  const lean = write(query, { ...answer, additional: [] }, { ...options, rcode: answer.rcode });
  if (lean.length <= most) return lean;
  const cut = { ...answer, answers: [], authority: [], additional: [] };
  return write(query, cut, { ...options, rcode: answer.rcode, truncate: true });
}

/** One message of a transfer. */
export function writeTransfer(query: Query, answers: Answered[]): Buffer {
  const answer: Answer = { rcode: 0, isAuthoritative: true, answers, authority: [], additional: [] };
  return write({ ...query, edns: null }, answer, { rcode: 0, transport: 'tcp', cookie: null });
}

function udpLimit({ edns }: Query): number {
  return edns ? Math.min(edns.udpBytes, UDP_BYTES_MAX) : PLAIN_UDP_BYTES;
}

function write(read: Query | Malformed, answer: Answer, { rcode, cookie, truncate }: ResponseOptions): Buffer {
  const question = isQuery(read) ? read.question : Buffer.alloc(0);
  const edns = isQuery(read) ? read.edns : null;
  const names = new Names();
  if (isQuery(read)) names.add(read.labels, HEADER_BYTES);
  const parts: Buffer[] = [Buffer.alloc(HEADER_BYTES), question];
  const position = { at: HEADER_BYTES + question.length };
  const counts = [answer.answers, answer.authority, answer.additional].map((section) =>
    section.reduce((sum, answered) => sum + writeSet(parts, position, names, answered), 0),
  );
  if (edns) parts.push(optRecord(edns, rcode, cookie));
  const head = parts[0] as Buffer;
  head.writeUInt16BE(read.id, 0);
  head.writeUInt16BE(flagsOf(read, answer, rcode, Boolean(truncate)), 2);
  head.writeUInt16BE(question.length ? 1 : 0, 4);
  counts.forEach((count, index) => head.writeUInt16BE(count + (index === 2 && edns ? 1 : 0), 6 + index * 2));
  return Buffer.concat(parts);
}

function flagsOf(read: Malformed, { isAuthoritative }: Answer, rcode: number, isTruncated: boolean): number {
  const authoritative = isAuthoritative ? FLAG.authoritative : 0;
  const truncated = isTruncated ? FLAG.truncated : 0;
  return FLAG.response | (read.opcode << 11) | authoritative | truncated | read.echoed | (rcode & 0xf);
}

function writeSet(parts: Buffer[], position: { at: number }, names: Names, answered: Answered): number {
  const { owner, set, signatures } = answered;
  const ttl = answered.ttl ?? set.ttl;
  const put = (type: number, data: Buffer): void => {
    const name = names.write(owner, position.at);
    parts.push(name, recordHead({ type, ttl }, data), data);
    position.at += name.length + 10 + data.length;
  };
  for (const data of set.rdata) put(set.type, data);
  for (const data of signatures) put(TYPE.RRSIG, data);
  return set.rdata.length + signatures.length;
}

/** Name compression: positions of name suffixes already written. */
class Names {
  private readonly known = new Map<string, number>();

  add(labels: Labels, at: number): void {
    let position = at;
    labels.forEach((label, index) => {
      const key = keyOfLabels(labels.slice(index));
      if (position < 0x4000 && !this.known.has(key)) this.known.set(key, position);
      position += label.length + 1;
    });
  }

  /** Encodes a name at this position: labels up to a known suffix, then a pointer. */
  write(labels: Labels, at: number): Buffer {
    const parts: Buffer[] = [];
    for (let index = 0; index < labels.length; index += 1) {
      const pointer = this.known.get(keyOfLabels(labels.slice(index)));
      if (pointer !== undefined) {
        if (index > 0) this.add(labels, at);
        return Buffer.concat([...parts, Buffer.from([0xc0 | (pointer >> 8), pointer & 0xff])]);
      }
      const label = labels[index] as string;
      parts.push(Buffer.from([label.length]), Buffer.from(label, 'latin1'));
    }
    this.add(labels, at);
    return Buffer.concat([...parts, Buffer.from([0])]);
  }
}

/** RFC 6891 §6.1.2: the TTL field holds the upper bits of the response code. */
function optRecord({ dnssec }: Edns, rcode: number, cookie: Buffer | null): Buffer {
  const option = cookie ? Buffer.concat([Buffer.from([0, COOKIE_OPTION, 0, cookie.length]), cookie]) : Buffer.alloc(0);
  const head = Buffer.alloc(11);
  head.writeUInt16BE(TYPE.OPT, 1);
  head.writeUInt16BE(UDP_BYTES_MAX, 3);
  head.writeUInt8(rcode >> 4, 5);
  head.writeUInt16BE(dnssec ? DNSSEC_OK : 0, 7);
  head.writeUInt16BE(option.length, 9);
  return Buffer.concat([head, option]);
}
