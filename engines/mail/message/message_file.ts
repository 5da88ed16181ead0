// An incoming message, validated while it is received. A small one is stored in its row, a larger one in a file that is
// durable before the message is acknowledged (docs/decisions/0042).
import { isUtf8 } from 'node:buffer';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { BodyHash } from './body_hash';
import { fieldsNamed, formatHeader, parseHeader, valueOf, type HeaderField } from './header';
import { encodeHeader, hasLongLine, isAsciiText, LINE_BYTES_MAX } from './header_encoding';
import { LineEnds } from './line_ends';
import { openMessageText } from './message_text';
import { MimeStructureError } from './mime_walk';
import { SmtpReply, TRY_LATER } from '../reply';
import { encodeMessage, TextShape } from './seven_bit';
import { Spool } from '../spool';

export interface StoredMessage {
  /** The whole message, if it is small; null if it is stored in a file. */
  content: Buffer | null;
  file: string | null;
  size_bytes: number;
  /** Offset of the body. */
  body_offset: number;
  /** SHA-256 of the relaxed body, base64. */
  body_hash: string;
  fields: HeaderField[];
  message_id: string;
  subject: string;
}

export interface IncomingParts {
  id: string;
  /** Name of the file, if one is needed. */
  file: string;
  directory: string;
  bytesMax: number;
  /** Larger messages are stored in a file. */
  inlineBytesMax: number;
  /** Name of this host, for a Message-ID where the client sent none. */
  host: string;
  /** The Received field, which comes first (RFC 5321 §4.4). */
  received: string;
  /** MAIL has announced SMTPUTF8. */
  takesUtf8: boolean;
  /** Throws the reply to the client, if the header is not acceptable. */
  checkHeader(fields: readonly HeaderField[]): void;
  /** Resolves when the file, which is whole and synced, is durable under its name. */
  keep(): Promise<void>;
}

const HEADER_BYTES_MAX = 256 * 1024;
const HEADER_FIELDS_MAX = 1000;
/** Fields for servers only, or that would disclose recipients to each other. */
const DROPPED = new Set(['bcc', 'return-path', 'resent-bcc']);
const SUBJECT_CHARACTERS = 200;
/** Obsolete characters in RFC 5322 §4.1; some programs end a line or a text at one. */
const CONTROL = /[^\P{Cc}\t\r\n\x80-\x9f]/u;
const END_OF_HEADER = Buffer.from('\r\n\r\n');

/** @throws SmtpReply; no file remains then */
export async function receiveMessage(stream: Readable, parts: IncomingParts): Promise<StoredMessage> {
  const path = join(parts.directory, parts.file);
  let spool = new Spool(path, parts.inlineBytesMax);
  try {
    const { shape, ...given } = await write(stream, spool, parts);
    let stored: Written = given;
    if (!shape.isFit) ({ stored, spool } = await encodeStored(spool, given, parts));
    const content = await spool.end();
    if (content) return { ...stored, content, file: null };
    if (!shape.isFit) await rename(encodedPath(path), path);
    await parts.keep();
    return { ...stored, content: null, file: parts.file };
  } catch (error) {
    await spool.discard();
    await rm(path, { force: true });
    throw error instanceof SmtpReply ? error : TRY_LATER();
  }
}

function encodedPath(path: string): string {
  return `${path}.encoded`;
}

/** @throws SmtpReply; the new file is removed then */
async function encodeStored(
  given: Spool,
  { message_id, subject }: Written,
  { directory, file, inlineBytesMax }: IncomingParts,
): Promise<{ stored: Written; spool: Spool }> {
  const spool = new Spool(encodedPath(join(directory, file)), inlineBytesMax);
  const [hash, shape, text] = [new BodyHash(), new TextShape(), given.text()];
  try {
    const { fields, body, isEightBit } = await encodeMessage(() => openMessageText(text) as AsyncIterable<Buffer>);
    const head = Buffer.from(`${formatHeader(fields)}\r\n`, 'latin1');
    await spool.write(head);
    for await (const chunk of body) {
      hash.update(chunk);
      shape.take(chunk);
      await spool.write(chunk);
    }
    if (shape.hasLongLine || (shape.eightBitBytes && !isEightBit))
      throw new MimeStructureError('A part has a header that cannot be encoded.');
    await given.discard();
    const size_bytes = head.length + shape.bytes;
    const stored = { size_bytes, body_offset: head.length, body_hash: hash.digest(), fields, message_id, subject };
    return { stored, spool };
  } catch (error) {
    await spool.discard();
    if (!(error instanceof MimeStructureError)) throw error;
    throw new SmtpReply(550, '5.6.0', `The body has to be encoded for transport, and cannot be. ${error.message}`);
  }
}

interface Progress {
  parts: IncomingParts;
  spool: Spool;
  bytes: number;
  /** Bytes of the header, until it is complete. */
  head: Buffer[];
  headBytes: number;
  fields: HeaderField[] | null;
  subject: string;
  bodyOffset: number;
  hash: BodyHash;
  /** Statistics of the body. */
  shape: TextShape;
  lines: LineEnds;
}

type Written = Omit<StoredMessage, 'content' | 'file'>;

async function write(stream: Readable, spool: Spool, parts: IncomingParts): Promise<Written & { shape: TextShape }> {
  const state: Progress = {
    ...{ parts, spool, bytes: 0, head: [], headBytes: 0, fields: null, subject: '', bodyOffset: 0 },
    ...{ hash: new BodyHash(), shape: new TextShape(), lines: new LineEnds() },
  };
  try {
    const chunks = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const chunk of chunks) await processChunk(state, chunk);
  } finally {
    // The client sees a rejection only after its whole message was read.
    stream.resume();
  }
  // A message may consist of a header only.
  if (!state.fields) await endHeader(state, Buffer.concat(state.head), null);
  if (!state.lines.end()) throw bareLineEnd();
  const fields = state.fields as unknown as HeaderField[];
  return {
    ...{ size_bytes: state.bytes, body_offset: state.bodyOffset, body_hash: state.hash.digest(), fields },
    ...{ message_id: valueOf(fieldsNamed(fields, 'message-id')[0] as HeaderField), subject: state.subject },
    shape: state.shape,
  };
}

async function processChunk(state: Progress, chunk: Buffer): Promise<void> {
  state.bytes += chunk.length;
  if (state.bytes > state.parts.bytesMax)
    throw new SmtpReply(552, '5.3.4', `The message is larger than ${state.parts.bytesMax} bytes.`);
  if (!state.lines.take(chunk)) throw bareLineEnd();
  if (chunk.includes(0)) throw new SmtpReply(550, '5.6.0', 'The message has a NUL byte (RFC 5322 section 2.2).');
  if (state.fields) return appendBody(state, chunk);
  state.head.push(chunk);
  state.headBytes += chunk.length;
  const head = Buffer.concat(state.head);
  state.head = [head];
  // A message without a header begins with the empty line.
  const end = head.subarray(0, 2).equals(END_OF_HEADER.subarray(0, 2)) ? -2 : head.indexOf(END_OF_HEADER);
  if (end === -1) {
    if (head.length > HEADER_BYTES_MAX) throw headerTooLarge();
    return;
  }
  await endHeader(state, head.subarray(0, Math.max(end, 0)), head.subarray(end + END_OF_HEADER.length));
}

async function endHeader(state: Progress, head: Buffer, rest: Buffer | null): Promise<void> {
  if (head.length > HEADER_BYTES_MAX) throw headerTooLarge();
  const text = head.toString('latin1').replace(/\r\n$/, '');
  if (CONTROL.test(text)) throw new SmtpReply(550, '5.6.0', 'The header has a control character.');
  const given = text ? parseHeader(text) : [];
  if (!given) throw new SmtpReply(550, '5.6.0', 'The header has a line that is not a header field.');
  if (given.length > HEADER_FIELDS_MAX) throw headerTooLarge();
  state.parts.checkHeader(given);
  state.subject = subjectOf(given);
  state.fields = encodeHeader(completed(given, state.parts));
  requireFit(state.fields, state.parts);
  const written = Buffer.from(`${formatHeader(state.fields)}\r\n`, 'latin1');
  state.bodyOffset = written.length;
  await state.spool.write(written);
  state.head = [];
  if (rest?.length) await appendBody(state, rest);
}

async function appendBody(state: Progress, chunk: Buffer): Promise<void> {
  state.hash.update(chunk);
  state.shape.take(chunk);
  await state.spool.write(chunk);
}

/** Non-ASCII that remains is in addresses and identifiers. @throws SmtpReply */
function requireFit(fields: readonly HeaderField[], { takesUtf8 }: IncomingParts): void {
  if (hasLongLine(fields))
    throw new SmtpReply(550, '5.6.0', `The header has a line of more than ${LINE_BYTES_MAX} bytes without a blank.`);
  const text = formatHeader(fields);
  if (isAsciiText(text)) return;
  if (!takesUtf8)
    throw new SmtpReply(550, '5.6.7', 'The header has addresses beyond ASCII: MAIL needs SMTPUTF8 (RFC 6531).');
  if (!isUtf8(Buffer.from(text, 'latin1'))) throw new SmtpReply(550, '5.6.0', 'The header is not UTF-8 (RFC 6532).');
}

/** Adds the fields that a submission server adds (RFC 6409 §8). */
function completed(given: readonly HeaderField[], { received, id, host }: IncomingParts): HeaderField[] {
  const kept = given.filter(({ name }) => !DROPPED.has(name));
  const added: HeaderField[] = [{ name: 'received', raw: received }];
  if (!fieldsNamed(kept, 'date').length)
    added.push({ name: 'date', raw: `Date: ${new Date().toUTCString().replace('GMT', '+0000')}` });
  if (!fieldsNamed(kept, 'message-id').length) added.push({ name: 'message-id', raw: `Message-ID: <${id}@${host}>` });
  return [...added, ...kept];
}

function subjectOf(fields: readonly HeaderField[]): string {
  const [field] = fieldsNamed(fields, 'subject');
  if (!field) return '';
  const text = Buffer.from(valueOf(field), 'latin1').toString('utf8');
  return text.replace(/[\p{Cc}\ufffd]/gu, ' ').slice(0, SUBJECT_CHARACTERS);
}

function bareLineEnd(): SmtpReply {
  return new SmtpReply(550, '5.6.0', 'The message has a bare CR or LF. Lines end with CR LF (RFC 5321 section 2.3.8).');
}

function headerTooLarge(): SmtpReply {
  return new SmtpReply(
    552,
    '5.3.4',
    `The header is larger than ${HEADER_BYTES_MAX / 1024} KiB, or has too many fields.`,
  );
}
