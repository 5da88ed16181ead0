// Converts messages to a form that every server accepts: ASCII bodies with lines of at most 998 bytes. The conversion
// happens before signing (RFC 6376 §5.3), once for all destinations (docs/decisions/0042).
import { isAscii } from 'node:buffer';
import { encodeHeader, LINE_BYTES_MAX } from './header_encoding';
import { fieldsNamed, formatHeader, type HeaderField } from './header';
import { isIdentity, MimeStructureError, walkMime, type MimeEntity, type MimeEvent } from './mime_walk';
import { base64, base64InLines, quotedPrintable, type TransferEncoder } from './transfer_encoding';

const LF = 10;
const PIECE_BYTES = 64 * 1024;
/** Above this share of non-ASCII bytes, base64 is shorter than quoted-printable. */
const QUOTED_SHARE_MAX = 0.18;

/** Collects statistics of a text stream: non-ASCII bytes, and the longest line. Chunks may be cut anywhere. */
export class TextShape {
  bytes = 0;
  eightBitBytes = 0;
  hasLongLine = false;
  private line = 0;
  private decoder: TextDecoder | null = new TextDecoder('utf-8', { fatal: true });

  take(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (!isAscii(chunk)) this.takeEightBit(chunk);
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.extend(end + 1 - start);
      this.line = 0;
      start = end + 1;
    }
    this.extend(chunk.length - start);
  }

  /** Whether the non-ASCII bytes are valid UTF-8. */
  get isUtf8(): boolean {
    return this.decoder !== null;
  }

  get isFit(): boolean {
    return this.eightBitBytes === 0 && !this.hasLongLine;
  }

  private takeEightBit(chunk: Buffer): void {
    for (const byte of chunk) if (byte > 127) this.eightBitBytes += 1;
    try {
      this.decoder?.decode(chunk, { stream: true });
    } catch {
      this.decoder = null;
    }
  }

  /** Extends the current line, including its line end. */
  private extend(bytes: number): void {
    this.line += bytes;
    if (this.line > LINE_BYTES_MAX + 2) this.hasLongLine = true;
  }
}

interface EncodedMessage {
  fields: HeaderField[];
  body: AsyncIterable<Buffer>;
  /** Non-ASCII bytes remain in signed parts. */
  isEightBit: boolean;
}

type Source = () => AsyncIterable<Buffer>;

/**
 * Encodes the parts that need it. Parts of a multipart/signed are unchanged, and may keep non-ASCII bytes.
 * @param open the whole message; it is read twice
 * @throws MimeStructureError for an invalid structure, or a signed part with a line that is too long
 */
export async function encodeMessage(open: Source): Promise<EncodedMessage> {
  const shapes: TextShape[] = [];
  let isEightBit = false;
  for await (const { kind, entity, bytes } of walkMime(open())) {
    const shape = (shapes[entity.index] ??= new TextShape());
    // Headers are rewritten, except for signed ones.
    if (kind !== 'header' || entity.isSigned) shape.take(bytes);
    if (entity.isSigned && shape.eightBitBytes) isEightBit = true;
  }
  const events = walkMime(open());
  const first = (await events.next()).value as MimeEvent;
  const fields = headerOf(first.entity, shapes);
  return { fields, isEightBit, body: gathered(encodedBody(first.entity, events, shapes)) };
}

/** Merges lines into chunks that are worth a write. */
async function* gathered(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    waiting.push(piece);
    bytes += piece.length;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(waiting);
    waiting = [];
    bytes = 0;
  }
  if (waiting.length) yield Buffer.concat(waiting);
}

async function* encodedBody(
  first: MimeEntity,
  events: AsyncIterable<MimeEvent>,
  shapes: readonly TextShape[],
): AsyncGenerator<Buffer> {
  let current = first;
  let encoder = encoderOf(first, shapes);
  for await (const event of events) {
    if (event.entity !== current || event.kind !== 'body') {
      if (encoder) yield encoder.end();
      encoder = null;
    }
    current = event.entity;
    if (event.kind === 'header') {
      encoder = encoderOf(event.entity, shapes);
      yield writtenHeader(event, shapes);
    } else if (event.kind === 'body') yield encoder ? encoder.push(event.bytes) : event.bytes;
    else yield current.isSigned ? event.bytes : fitText(event.bytes);
  }
  if (encoder) yield encoder.end();
}

function writtenHeader({ entity, bytes }: MimeEvent, shapes: readonly TextShape[]): Buffer {
  // An empty or signed header is unchanged, unless an encoding has to be added.
  if (entity.isSigned || (!entity.fields.length && !encodingOf(entity, shapes))) return bytes;
  return Buffer.from(`${formatHeader(headerOf(entity, shapes))}\r\n`, 'latin1');
}

/** Text between parts, which readers do not display. */
function fitText(bytes: Buffer): Buffer {
  const shape = new TextShape();
  shape.take(bytes);
  if (shape.isFit) return bytes;
  const text = bytes.toString('latin1').replace(/[\x80-\xff]/g, '?');
  return Buffer.from(text.replace(new RegExp(`[^\r\n]{${LINE_BYTES_MAX - 2}}(?=[^\r\n])`, 'g'), '$&\r\n '), 'latin1');
}

function encoderOf(entity: MimeEntity, shapes: readonly TextShape[]): TransferEncoder | null {
  const encoding = encodingOf(entity, shapes);
  if (entity.kind !== 'leaf' || encoding === null) return null;
  const isEncoded = entity.encoding === encoding;
  if (encoding === 'base64') return isEncoded ? base64InLines() : base64();
  return quotedPrintable({ isEncoded });
}

/** The new encoding of an entity; null where it is unchanged. @throws MimeStructureError */
function encodingOf(entity: MimeEntity, shapes: readonly TextShape[]): 'base64' | 'quoted-printable' | '7bit' | null {
  const { kind, type, encoding, isSigned } = entity;
  const shape = shapes[entity.index] as TextShape;
  if (isSigned) {
    if (!shape.hasLongLine) return null;
    throw new MimeStructureError(`A signed part has a line of more than ${LINE_BYTES_MAX} bytes.`);
  }
  if (kind !== 'leaf') return ['', '7bit'].includes(encoding) ? null : '7bit';
  if (shape.isFit) return null;
  if (encoding === 'base64' || encoding === 'quoted-printable') return encoding;
  if (!isIdentity(encoding)) throw new MimeStructureError('A part has an encoding that is not known.');
  const isText = /^(text|message)\//.test(type);
  return isText && shape.eightBitBytes <= shape.bytes * QUOTED_SHARE_MAX ? 'quoted-printable' : 'base64';
}

function headerOf(entity: MimeEntity, shapes: readonly TextShape[]): HeaderField[] {
  const encoding = encodingOf(entity, shapes);
  const kept = encodeHeader(entity.fields);
  if (encoding === null) return kept;
  const added: HeaderField[] = [];
  const add = (name: string, value: string): void =>
    void added.push({ name: name.toLowerCase(), raw: `${name}: ${value}` });
  const isMessage = entity.index === 0 || fieldsNamed(kept, 'from').length > 0;
  if (isMessage && !fieldsNamed(kept, 'mime-version').length) add('MIME-Version', '1.0');
  if (!fieldsNamed(kept, 'content-type').length && entity.kind === 'leaf') {
    const { eightBitBytes, isUtf8 } = shapes[entity.index] as TextShape;
    add('Content-Type', `text/plain; charset=${eightBitBytes === 0 ? 'us-ascii' : isUtf8 ? 'utf-8' : 'unknown-8bit'}`);
  }
  add('Content-Transfer-Encoding', encoding);
  return [...kept.filter(({ name }) => name !== 'content-transfer-encoding'), ...added];
}
