// Messages of the plugin pgoutput, protocol version 1 (PostgreSQL, "Logical Replication Message Formats"). Values are
// text, as the source writes them.

export interface Column {
  name: string;
  /** Of the replica identity. */
  isKey: boolean;
}

export interface Relation {
  id: number;
  schema: string;
  name: string;
  /** `d` primary key, `i` an index, `f` the whole row, `n` nothing. */
  identity: string;
  columns: Column[];
}

/** undefined: a large value that has not changed, and is not sent. */
export type Tuple = (string | null | undefined)[];

export type Change =
  | { kind: 'begin' }
  | { kind: 'commit'; end: bigint; at: Date }
  | { kind: 'relation'; relation: Relation }
  | { kind: 'insert'; relation: number; row: Tuple }
  | { kind: 'update'; relation: number; old: Tuple | null; row: Tuple }
  | { kind: 'delete'; relation: number; old: Tuple }
  | { kind: 'truncate'; relations: number[]; restartsIdentity: boolean }
  | { kind: 'other' };

/** Microseconds between 1970 and 2000, where PostgreSQL begins to count. */
const EPOCH_MS = 946_684_800_000n;

export function readChange(body: Buffer): Change {
  const reader = new Reader(body);
  const kind = String.fromCharCode(reader.byte());
  switch (kind) {
    case 'B':
      return { kind: 'begin' };
    case 'C': {
      reader.skip(9);
      return { kind: 'commit', end: reader.long(), at: new Date(Number(reader.long() / 1000n + EPOCH_MS)) };
    }
    case 'R':
      return { kind: 'relation', relation: readRelation(reader) };
    case 'I': {
      const relation = reader.int();
      reader.skip(1);
      return { kind: 'insert', relation, row: readTuple(reader) };
    }
    case 'U':
      return readUpdate(reader);
    case 'D': {
      const relation = reader.int();
      reader.skip(1);
      return { kind: 'delete', relation, old: readTuple(reader) };
    }
    case 'T': {
      const count = reader.int();
      const options = reader.byte();
      const relations = Array.from({ length: count }, () => reader.int());
      return { kind: 'truncate', relations, restartsIdentity: (options & 2) !== 0 };
    }
    default:
      return { kind: 'other' };
  }
}

function readRelation(reader: Reader): Relation {
  const [id, schema, name] = [reader.int(), reader.text(), reader.text()];
  const identity = String.fromCharCode(reader.byte());
  const columns = Array.from({ length: reader.short() }, () => {
    const isKey = (reader.byte() & 1) !== 0;
    const column = { name: reader.text(), isKey };
    reader.skip(8);
    return column;
  });
  return { id, schema: schema === '' ? 'pg_catalog' : schema, name, identity, columns };
}

function readUpdate(reader: Reader): Change {
  const relation = reader.int();
  const mark = String.fromCharCode(reader.byte());
  const old = mark === 'N' ? null : readTuple(reader);
  if (old) reader.skip(1);
  return { kind: 'update', relation, old, row: readTuple(reader) };
}

function readTuple(reader: Reader): Tuple {
  return Array.from({ length: reader.short() }, () => {
    const kind = String.fromCharCode(reader.byte());
    if (kind === 'n') return null;
    if (kind === 'u') return undefined;
    return reader.string(reader.int());
  });
}

class Reader {
  private at = 0;

  constructor(private readonly body: Buffer) {}

  skip(bytes: number): void {
    this.at += bytes;
  }

  byte(): number {
    return this.body[this.at++]!;
  }

  short(): number {
    this.at += 2;
    return this.body.readUInt16BE(this.at - 2);
  }

  int(): number {
    this.at += 4;
    return this.body.readUInt32BE(this.at - 4);
  }

  long(): bigint {
    this.at += 8;
    return this.body.readBigUInt64BE(this.at - 8);
  }

  string(bytes: number): string {
    this.at += bytes;
    return this.body.toString('utf8', this.at - bytes, this.at);
  }

  text(): string {
    const end = this.body.indexOf(0, this.at);
    const text = this.body.toString('utf8', this.at, end);
    this.at = end + 1;
    return text;
  }
}

/** `16/B374D848` as a number. */
export function lsnOf(text: string): bigint {
  const [high = '0', low = '0'] = text.split('/');
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function formatLsn(lsn: bigint): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffffffffn).toString(16).toUpperCase()}`;
}
