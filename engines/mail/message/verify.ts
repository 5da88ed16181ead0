// Whether a file has the message that was accepted, as its row describes it.
import { BodyHash } from './body_hash';
import { openMessageText } from './message_text';

export interface MessageShape {
  body_offset: number;
  /** SHA-256 of the relaxed body, base64. */
  body_hash: string;
}

/** Compares the body; a header of another length moves it. @throws Error where the file cannot be read */
export async function isMessage(file: string, { body_offset, body_hash }: MessageShape): Promise<boolean> {
  const hash = new BodyHash();
  for await (const chunk of openMessageText(file, body_offset) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest() === body_hash;
}
