// Reads the statements of a dump without a client program: what only a client understands, such as `\!` of psql or
// `source` of mariadb, is never run. The text is read as bytes (latin1), because all that separates statements is
// ASCII.
import { DriverError } from '../../../core/driver';

export type Dialect = 'postgresql' | 'mysql';

/** `line`: where it begins, from 1. `client`: a command of psql, from its backslash to the end of the line. */
export interface DumpStatement {
  kind: 'sql' | 'client';
  /** One character for each byte. */
  text: string;
  line: number;
}

/** The largest that a server takes by default (max_allowed_packet of MySQL, and far more than pg_dump writes). */
const STATEMENT_BYTES_MAX = 64 * 2 ** 20;
/** The longest token that must be seen whole: the tag of a dollar quote has at most 63 bytes. */
const LOOKAHEAD = 80;
const READ_BYTES = 2 ** 16;
const IDENTIFIER = /[A-Za-z0-9_\x80-\xff]/;
const WITH_BODY = /^\s*create\s+(or\s+replace\s+)?(function|procedure)\b/i;

export class SqlReader {
  /** Bytes of the dump that were read. */
  bytes = 0;
  private readonly source: AsyncIterator<Buffer>;
  private buffer = '';
  private at = 0;
  private line = 1;
  private isOver = false;
  private delimiter = ';';
  /** The next backslash at or after where it was last looked for; Infinity: none in the buffer. */
  private backslash = -1;
  /** Backslashes escape in plain strings: in MySQL, and in dumps of PostgreSQL from before 9.1. */
  private escapes: boolean;

  constructor(
    source: AsyncIterable<Buffer>,
    private readonly dialect: Dialect,
    /** Is given each comment to the end of its line that stands before a statement. */
    private readonly onComment: (line: string) => void = () => undefined,
  ) {
    this.source = source[Symbol.asyncIterator]();
    this.escapes = dialect === 'mysql';
  }

  /**
   * The next statement, without its delimiter; null at the end. @throws DriverError invalid where the dump is cut off
   */
  async next(): Promise<DumpStatement | null> {
    for (;;) {
      await this.skipBlank();
      if (this.at >= this.buffer.length) return null;
      const { line } = this;
      if (this.dialect === 'postgresql' && this.buffer[this.at] === '\\')
        return { kind: 'client', text: await this.restOfLine(), line };
      if (this.dialect === 'mysql' && (await this.readDelimiter())) continue;
      const text = await this.readStatement(line);
      if (text === '') continue;
      if (/^\s*set\s+standard_conforming_strings\s*(=|to)/i.test(text)) this.escapes = /\boff\b|false/i.test(text);
      return { kind: 'sql', text, line };
    }
  }

  /** Reads no more: the file is closed, or the program that writes the text ends. */
  async close(): Promise<void> {
    await this.source.return?.().catch(() => undefined);
  }

  /** Rows after `COPY … FROM stdin`, to the line `\.`, in pieces of whole lines. */
  async *copyRows(): AsyncGenerator<Buffer> {
    await this.restOfLine();
    for (;;) {
      const end = this.buffer.lastIndexOf('\n') + 1;
      if (end <= this.at) {
        if (this.buffer.length - this.at > STATEMENT_BYTES_MAX) throw tooLarge(this.line, 'row');
        if (await this.more()) continue;
        if (this.buffer.slice(this.at) === '\\.') return void (await this.restOfLine());
        throw cutOff(this.line, 'rows of a table');
      }
      const marker = this.copyEnd(end);
      const piece = this.buffer.slice(this.at, marker ?? end);
      if (piece !== '') {
        this.advance(marker ?? end);
        yield Buffer.from(piece, 'latin1');
      }
      if (marker !== null) return void (await this.restOfLine());
    }
  }

  /** Goes past rows that nobody wants. */
  async skipRows(): Promise<void> {
    const rows = this.copyRows();
    while (!(await rows.next()).done);
  }

  /** Where the line `\.` begins, before `end`; null where there is none. */
  private copyEnd(end: number): number | null {
    const { buffer, at } = this;
    const isMark = (start: number) => /^\\\.\r?\n/.test(buffer.slice(start, start + 4));
    if (isMark(at)) return at;
    for (let found = buffer.indexOf('\n\\.', at); found >= 0 && found < end; found = buffer.indexOf('\n\\.', found + 1))
      if (isMark(found + 1)) return found + 1;
    return null;
  }

  /**
   * Reads on; false at the end of the file, where positions stay what they are. More at once for long statements, which
   * are copied each time.
   */
  private async more(): Promise<boolean> {
    if (this.isOver) return false;
    const wanted = Math.max(READ_BYTES, Math.min(this.buffer.length - this.at, 2 ** 20));
    const pieces: string[] = [];
    for (let got = 0; got < wanted;) {
      const { done, value } = await this.source.next();
      if (done) {
        this.isOver = true;
        break;
      }
      got += value.length;
      this.bytes += value.length;
      pieces.push(value.toString('latin1'));
    }
    if (!pieces.length) return false;
    this.buffer = this.buffer.slice(this.at) + pieces.join('');
    // A mark of UTF-8 that some editors write.
    this.at = this.bytes === this.buffer.length && this.buffer.startsWith('\xef\xbb\xbf') ? 3 : 0;
    this.backslash = -1;
    return true;
  }

  private async require(length: number): Promise<void> {
    while (this.buffer.length - this.at < length) if (!(await this.more())) return;
  }

  /** White space and comments before a statement, and delimiters alone. */
  private async skipBlank(): Promise<void> {
    for (;;) {
      await this.require(LOOKAHEAD);
      const blank = /[\s\0]*/y;
      blank.lastIndex = this.at;
      const end = this.at + (blank.exec(this.buffer)?.[0].length ?? 0);
      this.advance(end);
      const rest = this.buffer.slice(this.at, this.at + LOOKAHEAD);
      if (rest === '') {
        if (!(await this.more())) return;
        continue;
      }
      if (end === this.buffer.length) continue;
      // Between statements, clients of MySQL take `-----` as a comment, too.
      if (this.isLineComment(rest) || rest.startsWith('--')) this.onComment(await this.restOfLine());
      else if (rest.startsWith('/*') && !this.isCode(rest)) this.advance(await this.endOfComment(this.at));
      else if (this.buffer.startsWith(this.delimiter, this.at)) this.advance(this.at + this.delimiter.length);
      else return;
    }
  }

  private isLineComment(rest: string): boolean {
    if (this.dialect === 'postgresql') return rest.startsWith('--');
    return rest[0] === '#' || /^--([\s\0]|$)/.test(rest);
  }

  /** A comment that MySQL or MariaDB executes; not that by which mariadb-dump puts its client into a sandbox. */
  private isCode(rest: string): boolean {
    return this.dialect === 'mysql' && /^\/\*(!|M!(?!999999\\-))/.test(rest);
  }

  private async readDelimiter(): Promise<boolean> {
    const [, word] = /^delimiter[ \t]+(\S+)/i.exec(this.buffer.slice(this.at, this.at + LOOKAHEAD)) ?? [];
    if (word === undefined) return false;
    await this.restOfLine();
    this.delimiter = word;
    return true;
  }

  /** From the next statement to its delimiter. Positions are relative to `at`, which moves when more is read. */
  private async readStatement(line: number): Promise<string> {
    const hasBody = WITH_BODY.test(this.buffer.slice(this.at, this.at + LOOKAHEAD));
    const code: string[] = [];
    const tokens = this.tokens();
    const [delimiter] = this.delimiter;
    for (let [index, depth] = [0, 0]; ;) {
      if (index > STATEMENT_BYTES_MAX) throw tooLarge(line, 'statement');
      tokens.lastIndex = this.at + index;
      const position = tokens.exec(this.buffer)?.index ?? this.buffer.length;
      const from = position - this.at;
      if (hasBody) code.push(this.buffer.slice(this.at + index, position));
      if (this.buffer.length - position < LOOKAHEAD && (await this.more())) {
        index = from;
        continue;
      }
      if (position >= this.buffer.length) return this.lastStatement();
      const char = this.buffer[position]!;
      const isEnd = char === delimiter && depth <= 0 && this.buffer.startsWith(this.delimiter, position);
      if (isEnd && !isWithinBody(code)) return this.take(position);
      const quick = this.quickEnd(position, char);
      const end = quick === null ? await this.endOfToken(position, line) : quick - this.at;
      if (end === null && this.dialect === 'postgresql') depth += char === '(' ? 1 : char === ')' ? -1 : 0;
      index = end ?? from + 1;
    }
  }

  /** Where a quoted part ends, in the buffer; null where that is not known without more work. */
  private quickEnd(position: number, char: string): number | null {
    if (char !== "'" && char !== '"' && (char !== '`' || this.dialect === 'postgresql')) return null;
    if (!this.isEscaping(position, char)) return this.buffer.indexOf(char, position + 1) + 1 || null;
    for (let from = position + 1; ;) {
      const end = this.buffer.indexOf(char, from);
      if (end < 0) return null;
      if (this.backslash < from) {
        const next = this.buffer.indexOf('\\', from);
        this.backslash = next < 0 ? Infinity : next;
      }
      if (this.backslash > end) return end + 1;
      from = this.backslash + 2;
    }
  }

  private isEscaping(position: number, quote: string): boolean {
    if (this.dialect === 'mysql') return quote !== '`';
    if (quote !== "'") return false;
    return this.escapes || isEscape(this.buffer.slice(Math.max(this.at, position - 2), position));
  }

  private tokens(): RegExp {
    const first = this.delimiter[0]!.replace(/[\\\]^-]/g, '\\$&');
    return this.dialect === 'mysql' ? new RegExp(`['"\`#/${first}]|--`, 'g') : /['"$;()/]|--/g;
  }

  /** Where a quoted part or a comment ends, relative to `at`; null where it is neither. */
  private async endOfToken(position: number, line: number): Promise<number | null> {
    const rest = this.buffer.slice(position, position + LOOKAHEAD);
    const first = rest[0]!;
    const offset = position - this.at;
    if (this.isLineComment(rest)) return this.endOfLine(offset);
    if (rest.startsWith('/*')) return this.isCode(rest) ? offset + 3 : (await this.endOfComment(position)) - this.at;
    if (this.dialect === 'postgresql' && first === '$') {
      const [tag] = /^\$([A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$/.exec(rest) ?? [];
      const isInName = position > this.at && IDENTIFIER.test(this.buffer[position - 1]!);
      return tag === undefined || isInName ? null : this.find(offset + tag.length, tag, line);
    }
    const isQuote = first === "'" || first === '"' || (first === '`' && this.dialect === 'mysql');
    if (!isQuote) return null;
    return this.isEscaping(position, first)
      ? this.findEscaped(offset + 1, first, line)
      : this.find(offset + 1, first, line);
  }

  private async find(offset: number, text: string, line: number): Promise<number> {
    for (let from = offset; ;) {
      const found = this.buffer.indexOf(text, this.at + from);
      if (found >= 0) return found - this.at + text.length;
      from = Math.max(offset, this.buffer.length - this.at - text.length);
      if (from > STATEMENT_BYTES_MAX) throw tooLarge(line, 'statement');
      if (!(await this.more())) throw cutOff(line, 'statement');
    }
  }

  private async findEscaped(offset: number, quote: string, line: number): Promise<number> {
    const either = quote === "'" ? /['\\]/g : /["\\]/g;
    for (let from = offset; ;) {
      either.lastIndex = this.at + from;
      const found = either.exec(this.buffer)?.index;
      if (found !== undefined && this.buffer[found] === quote) return found - this.at + 1;
      if (found !== undefined && found + 1 < this.buffer.length) {
        from = found - this.at + 2;
        continue;
      }
      from = (found ?? this.buffer.length) - this.at;
      if (from > STATEMENT_BYTES_MAX) throw tooLarge(line, 'statement');
      if (!(await this.more())) throw cutOff(line, 'statement');
    }
  }

  private async endOfLine(offset: number): Promise<number> {
    for (let from = offset; ;) {
      const found = this.buffer.indexOf('\n', this.at + from);
      if (found >= 0) return found - this.at + 1;
      from = this.buffer.length - this.at;
      if (!(await this.more())) return from;
    }
  }

  /** Those of PostgreSQL contain others. @returns a position in the buffer */
  private async endOfComment(start: number): Promise<number> {
    const { line } = this;
    const mark = this.dialect === 'postgresql' ? /\/\*|\*\//g : /\*\//g;
    let [offset, depth] = [start - this.at + 2, 1];
    for (;;) {
      mark.lastIndex = this.at + offset;
      const found = mark.exec(this.buffer);
      if (found) {
        depth += found[0] === '/*' ? 1 : -1;
        offset = found.index - this.at + 2;
        if (depth === 0) return this.at + offset;
        continue;
      }
      offset = Math.max(offset, this.buffer.length - this.at - 1);
      if (offset > STATEMENT_BYTES_MAX) throw tooLarge(line, 'comment');
      if (!(await this.more())) throw cutOff(line, 'comment');
    }
  }

  private take(end: number): string {
    const text = this.buffer.slice(this.at, end);
    this.advance(end + this.delimiter.length);
    return text.trim();
  }

  /** Without a delimiter, which clients forgive. */
  private lastStatement(): string {
    const text = this.buffer.slice(this.at);
    this.advance(this.buffer.length);
    return text.trim();
  }

  private async restOfLine(): Promise<string> {
    const end = this.at + (await this.endOfLine(0));
    const text = this.buffer.slice(this.at, end);
    this.advance(end);
    return text.trimEnd();
  }

  private advance(to: number): void {
    for (let found = this.buffer.indexOf('\n', this.at); found >= 0 && found < to;) {
      this.line += 1;
      found = this.buffer.indexOf('\n', found + 1);
    }
    this.at = to;
  }
}

/** The body of an SQL-standard function holds statements of its own, until its `END`. */
function isWithinBody(code: readonly string[]): boolean {
  if (!code.length) return false;
  const text = code.join(' ');
  if (!/\bbegin\s+atomic\b/i.test(text)) return false;
  const count = (words: RegExp) => text.match(words)?.length ?? 0;
  return count(/\b(begin|case)\b/gi) > count(/\bend\b/gi);
}

/** Whether a string after this has escapes: `E'…'`, where E is not the end of a name. */
function isEscape(before: string): boolean {
  return /(^|[^A-Za-z0-9_\x80-\xff])[eE]$/.test(before);
}

function tooLarge(line: number, what: string): DriverError {
  return new DriverError('invalid', `The ${what} on line ${line} of the file is larger than 64 MB.`);
}

function cutOff(line: number, what: string): DriverError {
  return new DriverError('invalid', `The file ends within the ${what} that begins on line ${line}: it is incomplete.`);
}
