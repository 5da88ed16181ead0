// Validation of line ends while a message is received.

const CR = 13;
const LF = 10;

/** Detects line ends other than CR LF: servers interpret them differently, which enables SMTP smuggling. */
export class LineEnds {
  private afterCr = false;

  /** False after a bare CR or LF. */
  take(chunk: Buffer): boolean {
    let at = 0;
    if (this.afterCr) {
      if (chunk[0] !== LF) return false;
      at = 1;
    }
    this.afterCr = false;
    for (;;) {
      const cr = chunk.indexOf(CR, at);
      const lf = chunk.indexOf(LF, at);
      if (cr === -1) return lf === -1;
      if (lf !== -1 && lf < cr) return false;
      if (cr === chunk.length - 1) return (this.afterCr = true);
      if (chunk[cr + 1] !== LF) return false;
      at = cr + 2;
    }
  }

  /** False where the last byte was a bare CR. */
  end(): boolean {
    return !this.afterCr;
  }
}
