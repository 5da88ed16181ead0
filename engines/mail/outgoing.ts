// An outgoing message: its text, preceded by the recipient's fields and the signatures.
import { isAscii } from 'node:buffer';
import { Readable } from 'node:stream';
import { dkimSignature, type SigningIdentity } from './message/dkim_signature';
import { formatHeader, parseHeader, type HeaderField } from './message/header';
import { openMessageText, readMessageStart, type MessageText } from './message/message_text';
import type { Outbound } from './transport';

interface OutgoingParts {
  text: MessageText;
  body_offset: number;
  body_hash: string;
  size_bytes: number;
  from: string;
  to: string;
  /** Header fields specific to the recipient, such as its reference. */
  fields: readonly HeaderField[];
  identities: readonly SigningIdentity[];
}

/** The header of a stored message. @throws Error where the file is missing */
async function readHeader(text: MessageText, body_offset: number): Promise<HeaderField[]> {
  const head = await readMessageStart(text, body_offset);
  return parseHeader(head.toString('latin1').replace(/(\r\n){1,2}$/, '')) ?? [];
}

/** Uses memory for the header only, regardless of the size of the message. */
export async function outgoingMessage(parts: OutgoingParts): Promise<Outbound> {
  const { text, body_offset, from, to, size_bytes } = parts;
  const head = await signedHeader([...parts.fields, ...(await readHeader(text, body_offset))], parts);
  return {
    ...{ from, to, size: size_bytes + head.length, needsUtf8: !isAscii(head) },
    isEightBit: () => hasEightBit(openMessageText(text, body_offset)),
    content: () => Readable.from(chunksOf(head, text, body_offset), { objectMode: false }),
  };
}

/** The complete header, including the empty line. */
export async function signedHeader(
  fields: readonly HeaderField[],
  { identities, body_hash }: Pick<OutgoingParts, 'identities' | 'body_hash'>,
): Promise<Buffer> {
  const at = new Date();
  const signatures = await Promise.all(identities.map((identity) => dkimSignature(fields, body_hash, identity, at)));
  return Buffer.from(`${signatures.join('')}${formatHeader(fields)}\r\n`, 'latin1');
}

async function hasEightBit(text: AsyncIterable<Buffer>): Promise<boolean> {
  for await (const chunk of text) if (!isAscii(chunk)) return true;
  return false;
}

async function* chunksOf(head: Buffer, text: MessageText, start: number): AsyncIterable<Buffer> {
  yield head;
  yield* openMessageText(text, start) as AsyncIterable<Buffer>;
}
