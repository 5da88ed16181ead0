// Streams the parts of a message (RFC 2046) line by line in constant memory. The bytes of all events are the message.
import { parseHeader, valueOf, fieldsNamed, type HeaderField } from './header';

/** A header with its content: the message itself, a part, or an embedded message. */
export interface MimeEntity {
  /** Position in the message, from 0. */
  index: number;
  fields: readonly HeaderField[];
  /** In lower case; the default of RFC 2045 §5.2 where the field is missing. */
  type: string;
  /** In lower case. */
  encoding: string;
  kind: 'leaf' | 'multipart' | 'message';
  /** Inside a multipart/signed: all of its bytes are signed (RFC 1847 §2.1). */
  isSigned: boolean;
}

export type MimeEvent =
  | { kind: 'header'; entity: MimeEntity; bytes: Buffer }
  /** Content of a leaf. The line end before a delimiter does not belong to it. */
  | { kind: 'body'; entity: MimeEntity; bytes: Buffer }
  /** Delimiters, and the text around the parts of a multipart. */
  | { kind: 'text'; entity: MimeEntity; bytes: Buffer };

/** The MIME structure is invalid. */
export class MimeStructureError extends Error {
  override readonly name = 'MimeStructureError';
}

const ENTITIES_MAX = 2000;
const HEADER_BYTES_MAX = 256 * 1024;
/** A longer line is split into several events, and is not a delimiter. */
const LINE_BYTES_MAX = 64 * 1024;
/** RFC 2046 §5.1.1 allows 70 characters and limited punctuation; a trailing space is ambiguous. */
const BOUNDARY = /^[ -~]{0,199}[!-~]$/;
const LF = 10;
const LINE_END = Buffer.from('\r\n');

interface Open {
  boundary: string;
  entity: MimeEntity;
}

/** @throws MimeStructureError */
export async function* walkMime(source: AsyncIterable<Buffer>): AsyncGenerator<MimeEvent> {
  const walk = new Walk();
  for await (const line of linesOf(source)) yield* walk.take(line);
  yield* walk.end();
}

class Walk {
  private readonly open: Open[] = [];
  private count = 0;
  private header: Buffer[] | null = [];
  private headerBytes = 0;
  private entity: MimeEntity | null = null;
  /** The container of the entity whose header is being read. */
  private container: MimeEntity | null = null;
  private inLeaf = false;
  private heldEnd = false;
  private isMidLine = false;

  *take(line: Buffer): Generator<MimeEvent> {
    const isStart = !this.isMidLine;
    this.isMidLine = line[line.length - 1] !== LF;
    if (isStart && this.open.length && line[0] === 45 && line[1] === 45) {
      const delimiter = this.delimiterOf(line);
      if (delimiter) return yield* this.cross(delimiter, line);
    }
    if (this.header) return yield* this.takeHeader(line);
    yield* this.takeContent(line);
  }

  *end(): Generator<MimeEvent> {
    if (this.header) yield* this.endHeader();
    if (this.heldEnd) yield this.content(LINE_END);
  }

  private *takeHeader(line: Buffer): Generator<MimeEvent> {
    (this.header as Buffer[]).push(line);
    this.headerBytes += line.length;
    if (this.headerBytes > HEADER_BYTES_MAX) throw new MimeStructureError('The header of a part is too large.');
    if (line.equals(LINE_END)) yield* this.endHeader();
  }

  private *endHeader(): Generator<MimeEvent> {
    const bytes = Buffer.concat(this.header as Buffer[]);
    const entity = entityOf(bytes, this.count, this.container);
    this.count += 1;
    if (this.count > ENTITIES_MAX) throw new MimeStructureError('The message has too many parts.');
    this.entity = entity;
    this.header = null;
    this.headerBytes = 0;
    this.inLeaf = entity.kind === 'leaf';
    yield { kind: 'header', entity, bytes };
    if (entity.kind === 'multipart') this.open.push({ boundary: boundaryOf(entity) as string, entity });
    if (entity.kind === 'message') this.beginEntity(entity);
  }

  private beginEntity(container: MimeEntity): void {
    this.container = container;
    this.header = [];
  }

  /** The last line end is held back: it would belong to a delimiter on the next line. */
  private *takeContent(line: Buffer): Generator<MimeEvent> {
    const ends = line.length >= 2 && line.subarray(-2).equals(LINE_END);
    const text = ends ? line.subarray(0, -2) : line;
    const bytes = this.heldEnd ? Buffer.concat([LINE_END, text]) : text;
    this.heldEnd = ends;
    if (bytes.length) yield this.content(bytes);
  }

  private content(bytes: Buffer): MimeEvent {
    return { kind: this.inLeaf ? 'body' : 'text', entity: this.entity as MimeEntity, bytes };
  }

  private delimiterOf(line: Buffer): { level: number; closes: boolean } | null {
    const text = line.toString('latin1').trimEnd().slice(2);
    for (let level = this.open.length - 1; level >= 0; level -= 1) {
      const { boundary } = this.open[level] as Open;
      if (text === boundary) return { level, closes: false };
      if (text === `${boundary}--`) return { level, closes: true };
    }
    return null;
  }

  private *cross({ level, closes }: { level: number; closes: boolean }, line: Buffer): Generator<MimeEvent> {
    if (this.header) yield* this.endHeader();
    this.header = null;
    const { entity } = this.open[level] as Open;
    const bytes = this.heldEnd ? Buffer.concat([LINE_END, line]) : line;
    this.open.splice(closes ? level : level + 1);
    this.heldEnd = this.inLeaf = false;
    this.entity = entity;
    yield { kind: 'text', entity, bytes };
    if (!closes) this.beginEntity(entity);
  }
}

/** @throws MimeStructureError for a multipart without a valid boundary */
function entityOf(bytes: Buffer, index: number, container: MimeEntity | null): MimeEntity {
  const fields = parseHeader(bytes.toString('latin1').replace(/(\r\n){1,2}$/, '')) ?? [];
  const first = (name: string): string => {
    const [field] = fieldsNamed(fields, name);
    return field ? valueOf(field).replace(/\([^()]*\)/g, '') : '';
  };
  const inDigest = container?.type === 'multipart/digest';
  const type = /^[\w.+-]+\/[\w.+-]+/.exec(first('content-type').trim())?.[0].toLowerCase();
  const entity: MimeEntity = {
    ...{ index, fields, kind: 'leaf', type: type ?? (inDigest ? 'message/rfc822' : 'text/plain') },
    encoding: first('content-transfer-encoding').trim().toLowerCase(),
    isSigned: container !== null && (container.isSigned || container.type === 'multipart/signed'),
  };
  if (!isIdentity(entity.encoding)) return entity;
  if (entity.type === 'message/rfc822' || entity.type === 'message/global') return { ...entity, kind: 'message' };
  if (!entity.type.startsWith('multipart/')) return entity;
  if (!BOUNDARY.test(boundaryOf(entity) ?? '')) throw new MimeStructureError('A multipart has no valid boundary.');
  return { ...entity, kind: 'multipart' };
}

function boundaryOf({ fields }: MimeEntity): string | null {
  const [field] = fieldsNamed(fields, 'content-type');
  const [, quoted, plain] =
    /;\s*boundary\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(field ? valueOf(field) : '') ?? [];
  const boundary = quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '';
  return boundary || null;
}

/** Unencoded text. Undefined encodings, such as `8bits`, are treated the same. */
export function isIdentity(encoding: string): boolean {
  return !/^(base64|quoted-printable|x-.*|uu.*)$/.test(encoding);
}

/** Lines with their ends; lines that are too long are split. */
async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = rest.length ? Buffer.concat([rest, chunk]) : chunk;
    let start = 0;
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
      yield bytes.subarray(start, end + 1);
      start = end + 1;
    }
    rest = bytes.subarray(start);
    // Keep a trailing CR together with a following LF.
    if (rest.length > LINE_BYTES_MAX) {
      yield rest.subarray(0, -1);
      rest = rest.subarray(-1);
    }
  }
  if (rest.length) yield rest;
}
