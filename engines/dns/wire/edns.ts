// The OPT record of a query (RFC 6891 §6.1), parsed strictly from the bytes: malformed options are a client error,
// which a codec would ignore.

/** Limit without EDNS (RFC 1035 §4.2.1). */
export const PLAIN_UDP_BYTES = 512;
export const DNSSEC_OK = 0x8000;
export const COOKIE_OPTION = 10;
const OPT = 41;
/** Type, class, TTL and length of a record. */
const HEAD_BYTES = 10;
const OPTION_HEAD_BYTES = 4;

export interface Edns {
  version: number;
  /** UDP payload size of the client, at least 512. */
  udpBytes: number;
  dnssec: boolean;
  cookie: Buffer | null;
}

/**
 * Malformed: more than one OPT record, an OPT record at a name other than the root or outside of the additional
 * section, options that do not fill it exactly, a cookie of an invalid length (RFC 7873 §5.2.2), or a truncated record.
 * @param start position after the question
 */
export function readEdns(message: Buffer, start: number): Edns | null | 'malformed' {
  const others = message.readUInt16BE(6) + message.readUInt16BE(8);
  const records = others + message.readUInt16BE(10);
  let found: Edns | null = null;
  let position = start;
  for (let index = 0; index < records; index += 1) {
    const head = endOfName(message, position);
    if (head < 0 || head + HEAD_BYTES > message.length) return 'malformed';
    const end = head + HEAD_BYTES + message.readUInt16BE(head + 8);
    if (end > message.length) return 'malformed';
    if (message.readUInt16BE(head) === OPT) {
      const edns: Edns | null = index >= others && head === position + 1 && !found ? readOpt(message, head, end) : null;
      if (!edns) return 'malformed';
      found = edns;
    }
    position = end;
  }
  return found;
}

/** @returns the position after the name, or -1 where the message ends before it does */
function endOfName(message: Buffer, start: number): number {
  let position = start;
  for (;;) {
    const length = message[position];
    if (length === undefined) return -1;
    if (length === 0) return position + 1;
    if (length >= 0xc0) return position + 2;
    if (length > 0x3f) return -1;
    position += length + 1;
  }
}

function readOpt(message: Buffer, head: number, end: number): Edns | null {
  let cookie: Buffer | null = null;
  let position = head + HEAD_BYTES;
  while (position < end) {
    if (position + OPTION_HEAD_BYTES > end) return null;
    const data = position + OPTION_HEAD_BYTES;
    const length = message.readUInt16BE(position + 2);
    if (data + length > end) return null;
    // Only the first cookie counts.
    if (message.readUInt16BE(position) === COOKIE_OPTION) cookie ??= message.subarray(data, data + length);
    position = data + length;
  }
  if (cookie && cookie.length !== 8 && (cookie.length < 16 || cookie.length > 40)) return null;
  return {
    version: message.readUInt8(head + 5),
    udpBytes: Math.max(message.readUInt16BE(head + 2), PLAIN_UDP_BYTES),
    dnssec: (message.readUInt16BE(head + 6) & DNSSEC_OK) !== 0,
    cookie,
  };
}
