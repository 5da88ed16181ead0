// Content transfer encodings (RFC 2045 §6.7, §6.8), as streams in constant memory. Input and output lines end with CR
// LF.

export interface TransferEncoder {
  /** Pieces may be cut anywhere. */
  push(piece: Buffer): Buffer;
  end(): Buffer;
}

/** RFC 2045: 76 characters per line, of which the last one may be the `=` of a soft line break. */
const LINE_MAX = 75;
const BASE64_LINE_BYTES = 57;
const BASE64_LINE_CHARACTERS = 76;
const [CR, LF, SPACE, TAB, EQUALS] = [13, 10, 32, 9, 61];
const HEX = Buffer.from('0123456789ABCDEF');

/** @param isEncoded the input is already quoted-printable, except for long lines and invalid bytes */
export function quotedPrintable({ isEncoded }: { isEncoded: boolean }): TransferEncoder {
  return new QuotedPrintable(isEncoded);
}

class QuotedPrintable implements TransferEncoder {
  private column = 0;
  /** Pending white space, which has to be encoded at the end of a line. */
  private space: number | null = null;
  /** Remaining characters of an escape sequence. */
  private escaped = 0;
  private out: number[] = [];

  constructor(private readonly isEncoded: boolean) {}

  push(piece: Buffer): Buffer {
    for (const byte of piece) this.take(byte);
    return this.taken();
  }

  end(): Buffer {
    this.settleSpace({ endsLine: true });
    return this.taken();
  }

  private take(byte: number): void {
    if (byte === CR) return;
    if (byte === LF) return this.endLine();
    this.settleSpace({ endsLine: false });
    if (byte === SPACE || byte === TAB) this.space = byte;
    else if (byte < SPACE || byte > 126 || (byte === EQUALS && !this.isEncoded)) this.escape(byte);
    else this.write(byte);
  }

  private endLine(): void {
    this.settleSpace({ endsLine: true });
    this.out.push(CR, LF);
    this.column = this.escaped = 0;
  }

  /** In encoded input, spaces at the end of a line were added in transport and are ignored. */
  private settleSpace({ endsLine }: { endsLine: boolean }): void {
    const { space } = this;
    this.space = null;
    if (space === null || (endsLine && this.isEncoded)) return;
    if (endsLine) this.escape(space);
    else this.write(space);
  }

  private escape(byte: number): void {
    this.room(3);
    this.out.push(EQUALS, HEX[byte >> 4] as number, HEX[byte & 15] as number);
    this.column += 3;
  }

  /** Keeps an escape sequence of three characters on one line. */
  private write(byte: number): void {
    if (byte === EQUALS) this.room(3);
    else if (this.escaped === 0) this.room(1);
    this.escaped = byte === EQUALS ? 2 : Math.max(this.escaped - 1, 0);
    this.out.push(byte);
    this.column += 1;
  }

  private room(characters: number): void {
    if (this.column + characters <= LINE_MAX) return;
    this.out.push(EQUALS, CR, LF);
    this.column = 0;
  }

  private taken(): Buffer {
    const bytes = Buffer.from(this.out);
    this.out = [];
    return bytes;
  }
}

export function base64(): TransferEncoder {
  let rest = Buffer.alloc(0);
  return {
    push(piece) {
      const bytes = Buffer.concat([rest, piece]);
      const whole = bytes.length - (bytes.length % BASE64_LINE_BYTES);
      rest = bytes.subarray(whole);
      return wrapped(bytes.subarray(0, whole).toString('base64'));
    },
    end: () => wrapped(rest.toString('base64')),
  };
}

/** Rewraps base64 to valid lines. Invalid characters are ignored (RFC 2045 §6.8). */
export function base64InLines(): TransferEncoder {
  let rest = '';
  return {
    push(piece) {
      const text = rest + piece.toString('latin1').replace(/[^A-Za-z0-9+/=]+/g, '');
      const whole = text.length - (text.length % BASE64_LINE_CHARACTERS);
      rest = text.slice(whole);
      return wrapped(text.slice(0, whole));
    },
    end: () => wrapped(rest),
  };
}

function wrapped(text: string): Buffer {
  const lines = text.match(new RegExp(`.{1,${BASE64_LINE_CHARACTERS}}`, 'g')) ?? [];
  return Buffer.from(lines.map((line) => `${line}\r\n`).join(''), 'latin1');
}
