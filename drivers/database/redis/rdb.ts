// Reads the keys of a snapshot (RDB file) as payloads of RESTORE, without understanding their values: only where they
// end. Format: src/rdb.h and src/rdb.c of Redis 7; a value in the file has the form that it has in a payload.
import { DriverError } from '../../../core/driver';
import { Crc64 } from './crc64';

export type RdbEntry =
  | {
      kind: 'key';
      database: number;
      key: Buffer;
      /** ms since the epoch; 0 = none */ expiresAt: number;
      payload: Buffer;
    }
  | { kind: 'function'; code: Buffer }
  | { kind: 'module'; database: number; key: Buffer };

const HEADER_BYTES = 9;
const READ_BYTES = 2 ** 18;
const VALUE_BYTES_MAX = 256 * 2 ** 20;
const OPCODES = {
  ...{ slotInfo: 0xf4, function: 0xf5, functionBeforeRelease: 0xf6, moduleAux: 0xf7, idle: 0xf8, frequency: 0xf9 },
  ...{ aux: 0xfa, resize: 0xfb, expiresMs: 0xfc, expires: 0xfd, select: 0xfe, end: 0xff },
};
const [MODULE, MODULE_2] = [6, 7];
/** One string, in which all elements are packed. */
const PACKED = new Set([0, 9, 10, 11, 12, 13, 16, 17, 20]);
const STREAMS: Readonly<Record<number, number>> = { 15: 1, 19: 2, 21: 3 };

/** More bytes are needed. */
const MORE = Symbol('more');

/** Keys and functions, in the order of the file. @throws DriverError invalid */
export async function* readRdb(
  source: AsyncIterable<Buffer>,
  counted: (bytes: number) => void,
): AsyncGenerator<RdbEntry> {
  const pieces = new Pieces(source, counted);
  const version = await headerOf(pieces);
  let [database, expiresAt] = [0, 0];
  for (;;) {
    const entry = await pieces.parse((cursor) => nextEntry(cursor, version));
    if (entry.do === 'select') database = entry.database;
    else if (entry.do === 'expires') ({ expiresAt } = entry);
    else if (entry.do === 'end') return pieces.requireWhole(version);
    else if (entry.do === 'function') yield { kind: 'function', code: entry.code };
    else if (entry.do === 'key') {
      const { key, payload } = entry;
      yield payload === null ? { kind: 'module', database, key } : { kind: 'key', database, key, expiresAt, payload };
      expiresAt = 0;
    }
  }
}

type Parsed =
  | { do: 'skip' | 'end' }
  | { do: 'select'; database: number }
  | { do: 'expires'; expiresAt: number }
  | { do: 'function'; code: Buffer }
  | { do: 'key'; key: Buffer; payload: Buffer | null };

async function headerOf(pieces: Pieces): Promise<number> {
  const header = (await pieces.parse((cursor) => cursor.take(HEADER_BYTES))).toString('latin1');
  const [, version] = /^(?:REDIS|VALKEY)(\d+)$/.exec(header) ?? [];
  if (version === undefined) throw new DriverError('invalid', 'The file is no snapshot of Redis (RDB).');
  return Number(version);
}

function nextEntry(cursor: Cursor, version: number): Parsed {
  const type = cursor.byte();
  switch (type) {
    case OPCODES.end:
      return { do: 'end' };
    case OPCODES.select:
      return { do: 'select', database: cursor.length() };
    case OPCODES.expiresMs:
      return { do: 'expires', expiresAt: Number(cursor.take(8).readBigUInt64LE()) };
    case OPCODES.expires:
      return { do: 'expires', expiresAt: cursor.take(4).readUInt32LE() * 1000 };
    case OPCODES.aux:
      cursor.strings(2);
      return { do: 'skip' };
    case OPCODES.resize:
      cursor.lengths(2);
      return { do: 'skip' };
    case OPCODES.slotInfo:
      cursor.lengths(3);
      return { do: 'skip' };
    case OPCODES.idle:
      cursor.length();
      return { do: 'skip' };
    case OPCODES.frequency:
      cursor.take(1);
      return { do: 'skip' };
    case OPCODES.moduleAux:
      cursor.lengths(3);
      cursor.moduleValues();
      return { do: 'skip' };
    case OPCODES.function:
      return { do: 'function', code: cursor.text() };
    default:
      return keyOf(cursor, type, version);
  }
}

function keyOf(cursor: Cursor, type: number, version: number): Parsed {
  const key = cursor.text();
  const start = cursor.at;
  skipValue(cursor, type);
  if (type === MODULE_2) return { do: 'key', key, payload: null };
  const body = Buffer.concat([Buffer.from([type]), cursor.since(start), Buffer.from([version & 0xff, version >> 8])]);
  return { do: 'key', key, payload: Buffer.concat([body, new Crc64().update(body).digest()]) };
}

function skipValue(cursor: Cursor, type: number): void {
  if (PACKED.has(type)) return cursor.strings(1);
  if (STREAMS[type]) return skipStream(cursor, STREAMS[type]);
  switch (type) {
    case 1:
    case 2:
    case 14:
      return cursor.strings(cursor.length());
    case 3:
      return cursor.times(cursor.length(), () => {
        cursor.strings(1);
        const digits = cursor.byte();
        if (digits < 253) cursor.take(digits);
      });
    case 4:
      return cursor.strings(2 * cursor.length());
    case 5:
      return cursor.times(cursor.length(), () => {
        cursor.strings(1);
        cursor.take(8);
      });
    case 18:
      return cursor.times(cursor.length(), () => {
        cursor.length();
        cursor.strings(1);
      });
    case 24:
      cursor.take(8);
      return cursor.times(cursor.length(), () => {
        cursor.length();
        cursor.strings(2);
      });
    case 25:
      cursor.take(8);
      return cursor.strings(1);
    case MODULE_2:
      cursor.length();
      return cursor.moduleValues();
    default: {
      const what = type === MODULE ? 'of a module before Redis 4' : `of the unknown kind ${type}`;
      throw new DriverError('invalid', `The snapshot has a value ${what}, or is damaged.`);
    }
  }
}

function skipStream(cursor: Cursor, form: number): void {
  cursor.strings(2 * cursor.length());
  cursor.lengths(form === 1 ? 3 : 8);
  cursor.times(cursor.length(), () => {
    cursor.strings(1);
    cursor.lengths(form === 1 ? 2 : 3);
    cursor.times(cursor.length(), () => {
      cursor.take(24);
      cursor.length();
    });
    cursor.times(cursor.length(), () => {
      cursor.strings(1);
      cursor.take(form === 3 ? 16 : 8);
      cursor.take(16 * cursor.length());
    });
  });
}

/** A position in bytes that may end too early: then `MORE` is thrown, and the entry is read again. */
class Cursor {
  constructor(
    private readonly bytes: Buffer,
    public at: number,
  ) {}

  take(count: number): Buffer {
    if (this.at + count > this.bytes.length) throw MORE;
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  byte(): number {
    return this.take(1)[0]!;
  }

  since(start: number): Buffer {
    return this.bytes.subarray(start, this.at);
  }

  length(): number {
    const first = this.byte();
    if (first >> 6 === 0) return first;
    if (first >> 6 === 1) return ((first & 0x3f) << 8) | this.byte();
    if (first === 0x80) return this.take(4).readUInt32BE();
    if (first === 0x81) return Number(this.take(8).readBigUInt64BE());
    throw new DriverError('invalid', 'The snapshot is damaged: it has a length that is none.');
  }

  lengths(count: number): void {
    this.times(count, () => void this.length());
  }

  times(count: number, read: () => void): void {
    for (let index = 0; index < count; index += 1) read();
  }

  strings(count: number): void {
    this.times(count, () => this.skipText());
  }

  skipText(): void {
    const encoding = this.bytes[this.at];
    if (encoding === undefined) throw MORE;
    if (encoding >> 6 !== 3) return void this.take(this.length());
    this.at += 1;
    const kind = encoding & 0x3f;
    if (kind < 3) return void this.take(1 << kind);
    if (kind > 3) throw new DriverError('invalid', 'The snapshot is damaged: it has a text that is none.');
    const packed = this.length();
    this.length();
    this.take(packed);
  }

  /** Its bytes, as a client would get them. */
  text(): Buffer {
    const encoding = this.bytes[this.at];
    if (encoding === undefined) throw MORE;
    if (encoding >> 6 !== 3) return Buffer.from(this.take(this.length()));
    const kind = encoding & 0x3f;
    if (kind < 3) {
      this.at += 1;
      const number = this.take(1 << kind);
      return Buffer.from(
        String(kind === 0 ? number.readInt8() : kind === 1 ? number.readInt16LE() : number.readInt32LE()),
      );
    }
    const start = this.at + 1;
    this.skipText();
    const inner = new Cursor(this.bytes, start);
    const packed = inner.length();
    const size = inner.length();
    return decompress(inner.take(packed), size);
  }

  moduleValues(): void {
    for (let opcode = this.length(); opcode !== 0; opcode = this.length()) {
      if (opcode === 1 || opcode === 2) this.length();
      else if (opcode === 3) this.take(4);
      else if (opcode === 4) this.take(8);
      else if (opcode === 5) this.strings(1);
      else throw new DriverError('invalid', 'The snapshot has data of a module that cannot be read.');
    }
  }
}

/** LZF. */
function decompress(packed: Buffer, size: number): Buffer {
  const damaged = new DriverError('invalid', 'The snapshot is damaged: a compressed text is broken.');
  if (size > VALUE_BYTES_MAX) throw damaged;
  const out = Buffer.alloc(size);
  for (let [from, to] = [0, 0]; from < packed.length;) {
    const control = packed[from++]!;
    if (control < 32) {
      if (to + control + 1 > size) throw damaged;
      packed.copy(out, to, from, from + control + 1);
      from += control + 1;
      to += control + 1;
      continue;
    }
    let count = (control >> 5) + 2;
    if (count === 9) count += packed[from++] ?? 0;
    let source = to - ((control & 0x1f) << 8) - (packed[from++] ?? 0) - 1;
    if (source < 0 || to + count > size) throw damaged;
    for (; count > 0; count -= 1) out[to++] = out[source++]!;
  }
  return out;
}

/** The bytes of the file that are not read yet. */
class Pieces {
  private readonly source: AsyncIterator<Buffer>;
  private bytes = Buffer.alloc(0);
  private at = 0;
  private isOver = false;
  private readonly checksum = new Crc64();

  constructor(
    source: AsyncIterable<Buffer>,
    private readonly counted: (bytes: number) => void,
  ) {
    this.source = source[Symbol.asyncIterator]();
  }

  async parse<T>(read: (cursor: Cursor) => T): Promise<T> {
    for (;;) {
      const cursor = new Cursor(this.bytes, this.at);
      try {
        const found = read(cursor);
        this.checksum.update(cursor.since(this.at));
        this.at = cursor.at;
        return found;
      } catch (error) {
        if (error !== MORE) throw error;
        if (!(await this.more())) throw new DriverError('invalid', 'The snapshot is cut off: it is incomplete.');
      }
    }
  }

  /** After the mark of the end, files since RDB 5 have a checksum; zeros where it is off. */
  async requireWhole(version: number): Promise<void> {
    if (version < 5) return;
    const expected = this.checksum.digest();
    const found = Buffer.from(await this.parse((cursor) => cursor.take(8)));
    if (!found.equals(expected) && found.some((byte) => byte !== 0))
      throw new DriverError('invalid', 'The snapshot is damaged: its checksum is another one.');
  }

  private async more(): Promise<boolean> {
    if (this.isOver) return false;
    const rest = this.bytes.subarray(this.at);
    if (rest.length > VALUE_BYTES_MAX)
      throw new DriverError('invalid', 'The snapshot has a value of more than 256 MB.');
    const pieces: Buffer[] = [rest];
    for (let got = 0; got < Math.max(READ_BYTES, rest.length);) {
      const { done, value } = await this.source.next();
      if (done) {
        this.isOver = true;
        break;
      }
      got += value.length;
      this.counted(value.length);
      pieces.push(value);
    }
    this.bytes = Buffer.concat(pieces);
    this.at = 0;
    return pieces.length > 1;
  }
}
