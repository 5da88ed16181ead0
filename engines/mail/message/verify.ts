// Whether a file has the message that was accepted, as its row describes it.
import { stat } from 'node:fs/promises';
import { BodyHash } from './body_hash';
import { openMessageText } from './message_text';

export interface MessageShape {
  size_bytes: number;
  body_offset: number;
  /** SHA-256 of the relaxed body, base64. */
  body_hash: string;
}

/** @throws Error where the file cannot be read */
export async function isMessage(file: string, { size_bytes, body_offset, body_hash }: MessageShape): Promise<boolean> {
  if ((await stat(file)).size !== Number(size_bytes)) return false;
  const hash = new BodyHash();
  for await (const chunk of openMessageText(file, body_offset) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest() === body_hash;
}
