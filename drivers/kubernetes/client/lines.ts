/** A line without its end. `cut`: it was longer, and the rest of it was dropped. */
interface StreamLine {
  content: Buffer;
  cut: boolean;
}

const NEWLINE = 10;

/** The lines of a stream, of which no more than `bytesMax` are kept in memory; the last need not have an end. */
export async function* linesOf(stream: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<StreamLine> {
  let parts: Buffer[] = [];
  let size = 0;
  const take = (part: Buffer): void => {
    const kept = part.subarray(0, Math.max(0, bytesMax - size));
    if (kept.length > 0) parts.push(kept);
    size += part.length;
  };
  const line = (): StreamLine => {
    const made = { content: Buffer.concat(parts), cut: size > bytesMax };
    parts = [];
    size = 0;
    return made;
  };
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      take(chunk.subarray(from, end));
      yield line();
      from = end + 1;
    }
    take(chunk.subarray(from));
  }
  if (size > 0) yield line();
}
