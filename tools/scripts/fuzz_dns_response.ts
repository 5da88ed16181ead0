// Whether a response is well-formed, checked independently of the code that has written it.
const HEADER_BYTES = 12;
const NAME_BYTES_MAX = 255;
const TYPE_OPT = 41;
const TYPE_TSIG = 250;
/** NOERROR to REFUSED, and NOTAUTH; BADVERS and BADCOOKIE have their upper bits in the OPT record. */
const RCODES = [0, 1, 2, 3, 4, 5, 7, 9];

/** @returns the fault, or null */
export function faultOfResponse(query: Buffer, response: Buffer, transport: 'udp' | 'tcp'): string | null {
  if (query.length < HEADER_BYTES) return 'an answer to too few bytes';
  const [queryFlags, flags] = [query.readUInt16BE(2), response.readUInt16BE(2)];
  if (queryFlags & 0x8000) return 'an answer to a response';
  if (response.readUInt16BE(0) !== query.readUInt16BE(0)) return 'another id';
  if ((flags & 0x8000) === 0 || (flags & 0x7800) !== (queryFlags & 0x7800)) return 'no response, or another opcode';
  if (flags & 0x00e0) return 'RA, Z or AD is set';
  if (!RCODES.includes(flags & 0xf)) return `response code ${flags & 0xf}`;
  if (response.length > bytesMaxFor(query, transport)) return `${response.length} bytes`;
  return faultOfSections(query, response);
}

function bytesMaxFor(query: Buffer, transport: 'udp' | 'tcp'): number {
  if (transport === 'tcp') return 65_535;
  // Additional records: an OPT record may be among them, and at most RFC 9715's size is sent.
  return query.readUInt16BE(10) === 0 ? 512 : 1232;
}

function faultOfSections(query: Buffer, response: Buffer): string | null {
  let position = HEADER_BYTES;
  const questions = response.readUInt16BE(4);
  if (questions > 1) return `${questions} questions`;
  if (questions) {
    const end = behindName(response, position);
    if (end === null) return 'a damaged question';
    position = end + 4;
    const isEchoed = query.subarray(HEADER_BYTES, position).equals(response.subarray(HEADER_BYTES, position));
    if (!isEchoed) return 'another question';
  }
  let special: number[] = [];
  for (const offset of [6, 8, 10]) {
    for (let left = response.readUInt16BE(offset); left > 0; left -= 1) {
      const head = behindName(response, position);
      if (head === null || head + 10 > response.length) return 'a damaged record';
      const type = response.readUInt16BE(head);
      position = head + 10 + response.readUInt16BE(head + 8);
      if (position > response.length) return 'a record beyond the end';
      if (type === TYPE_OPT || type === TYPE_TSIG) special = [...special, type];
      if ((type === TYPE_OPT || type === TYPE_TSIG) && offset !== 10) return 'OPT or TSIG among the answers';
    }
  }
  if (special.length !== new Set(special).size) return 'OPT or TSIG twice';
  return position === response.length ? null : 'bytes behind the last record';
}

/** Position behind a name; pointers lead backwards only, and to no name that is too long. */
function behindName(message: Buffer, start: number): number | null {
  let at = start;
  let end: number | null = null;
  let bytes = 0;
  let lowest = start;
  for (;;) {
    const length = message[at];
    if (length === undefined) return null;
    if (length >= 0xc0) {
      const low = message[at + 1];
      if (low === undefined) return null;
      end ??= at + 2;
      at = ((length & 0x3f) << 8) | low;
      if (at >= lowest || at < HEADER_BYTES) return null;
      lowest = at;
      continue;
    }
    if (length > 63) return null;
    bytes += length + 1;
    if (bytes > NAME_BYTES_MAX) return null;
    at += length + 1;
    if (length === 0) return end ?? at;
  }
}
