// The text of a message that was taken over: the content of its row, or a file.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';

/** The whole of it, or the path of its file. */
export type MessageText = Buffer | string;

/** From an offset on. A file is read in constant memory. */
export function openMessageText(text: MessageText, start = 0): Readable {
  if (typeof text === 'string') return createReadStream(text, { start });
  return Readable.from([text.subarray(start)], { objectMode: false });
}

/** Its first bytes; fewer where it is shorter. @throws Error where the file is gone */
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
