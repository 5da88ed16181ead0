// A message on its way out: its file, with the fields of this recipient and the signatures in front.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { dkimSignature, type SigningIdentity } from './dkim_signature';
import { formatHeader, parseHeader, type HeaderField } from './header';
import type { Outbound } from './transport';

export interface OutgoingParts {
  path: string;
  body_offset: number;
  body_hash: string;
  size_bytes: number;
  from: string;
  to: string;
  /** Fields of this recipient, such as its reference. */
  fields: readonly HeaderField[];
  identities: readonly SigningIdentity[];
}

/** The header of a stored message. @throws Error where the file is gone */
export async function readHeader(path: string, body_offset: number): Promise<HeaderField[]> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(body_offset), 0, body_offset, 0);
    const text = buffer.toString('latin1', 0, bytesRead).replace(/(\r\n){1,2}$/, '');
    return parseHeader(text) ?? [];
  } finally {
    await file.close();
  }
}

/** Memory of a header, whatever the size of the message. */
export async function outgoingMessage(parts: OutgoingParts): Promise<Outbound> {
  const { path, body_offset, from, to, size_bytes } = parts;
  const head = signedHeader([...parts.fields, ...(await readHeader(path, body_offset))], parts);
  return {
    ...{ from, to, size: size_bytes + head.length },
    content: () => Readable.from(chunksOf(head, path, body_offset), { objectMode: false }),
  };
}

/** The whole header, with the empty line behind it. */
export function signedHeader(
  fields: readonly HeaderField[],
  { identities, body_hash }: Pick<OutgoingParts, 'identities' | 'body_hash'>,
): Buffer {
  const at = new Date();
  const signatures = identities.map((identity) => dkimSignature(fields, body_hash, identity, at));
  return Buffer.from(`${signatures.join('')}${formatHeader(fields)}\r\n`, 'latin1');
}

async function* chunksOf(head: Buffer, path: string, start: number): AsyncIterable<Buffer> {
  yield head;
  yield* createReadStream(path, { start }) as AsyncIterable<Buffer>;
}
