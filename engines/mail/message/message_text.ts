// The text of an accepted message: the content of its row, or a file.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';

/** The content, or the path of its file. */
export type MessageText = Buffer | string;

/** Streams from an offset. A file is read in constant memory. */
export function openMessageText(text: MessageText, start = 0): Readable {
  if (typeof text === 'string') return createReadStream(text, { start });
  return Readable.from([text.subarray(start)], { objectMode: false });
}

/** The first bytes; fewer for a shorter message. @throws Error where the file is missing */
export async function readMessageStart(text: MessageText, bytes: number): Promise<Buffer> {
  if (typeof text !== 'string') return text.subarray(0, bytes);
  const file = await open(text, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
