// Body hash of DKIM: relaxed canonicalization (RFC 6376 §3.4.4), in constant memory.
import { createHash, type Hash } from 'node:crypto';

const CR = 13;
const LF = 10;
const SPACE = 32;
const TAB = 9;
const LINES_AT_ONCE = 4096;

export class BodyHash {
  private readonly hash: Hash = createHash('sha256');
  /** Pending line ends, which count only if more content follows. */
  private lineEnds = 0;
  /** Pending white space, which counts only if more content follows on the line. */
  private space = false;
  private isEmpty = true;

  /** Chunks may be cut anywhere. Lines end with CR LF; bare CR and LF were rejected before. */
  update(chunk: Buffer): void {
    let first = 0;
    while (first < chunk.length && this.take(chunk[first] as number)) first += 1;
    if (first === chunk.length) return;
    let end = chunk.length;
    while (isBlank(chunk[end - 1] as number)) end -= 1;
    this.release();
    const text = chunk.toString('latin1', first, end);
    // Most lines have single spaces only, and need no change.
    const inner = /\t|  | \r/.test(text) ? text.replace(/[ \t]+/g, ' ').replaceAll(' \r\n', '\r\n') : text;
    this.hash.update(inner, 'latin1');
    this.isEmpty = false;
    for (let at = end; at < chunk.length; at += 1) this.take(chunk[at] as number);
  }

  /** Base64. */
  digest(): string {
    if (!this.isEmpty) this.hash.update('\r\n');
    return this.hash.digest('base64');
  }

  /** Records white space and line ends; false for any other byte. */
  private take(byte: number): boolean {
    if (byte === LF) {
      this.lineEnds += 1;
      this.space = false;
    } else if (byte === SPACE || byte === TAB) this.space = true;
    else if (byte !== CR) return false;
    return true;
  }

  private release(): void {
    for (; this.lineEnds > 0; this.lineEnds -= Math.min(this.lineEnds, LINES_AT_ONCE))
      this.hash.update('\r\n'.repeat(Math.min(this.lineEnds, LINES_AT_ONCE)));
    if (this.space) this.hash.update(' ');
    this.space = false;
  }
}

function isBlank(byte: number): boolean {
  return byte === LF || byte === CR || byte === SPACE || byte === TAB;
}
