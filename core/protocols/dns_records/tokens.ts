// Zone files (RFC 1035 §5.1) as entries of tokens: comments, parentheses, quotation marks and escapes.

/** The file cannot be read from this line on: a quote or a parenthesis without its end, an unknown directive. */
export class UnreadableZoneFile extends Error {
  override readonly name = 'UnreadableZoneFile';

  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message);
  }
}

export interface Token {
  /** Escapes resolved. */
  bytes: Buffer;
  /** As it stands in the file, without quotation marks. */
  raw: string;
  isQuoted: boolean;
  /** Nothing stands between it and the token before. */
  isAdjoining: boolean;
}

export interface Entry {
  line: number;
  startsBlank: boolean;
  tokens: Token[];
  /** With the semicolon; empty without one. */
  comment: string;
}

/** Of a whole file: a zone of 2,000 records has a tenth of it. */
const TOKENS_MAX = 100_000;
/** Letters that stand for themselves. */
const PLAIN = { quoted: /[^\\"\n]+/y, bare: /[^\\ \t\r\f;()"\n]+/y };

/** Lines, with those in parentheses joined, without comments. @throws UnreadableZoneFile */
export function* zoneFileEntries(text: string): Generator<Entry> {
  const source = text.replace(/^\ufeff/, '');
  let at = 0;
  let line = 1;
  let depth = 0;
  let opened = 0;
  let entry: Entry | null = null;
  let tokenEnd = -1;
  let count = 0;
  while (at < source.length) {
    const letter = source[at] as string;
    if (letter === '\n') {
      if (!depth && entry?.tokens.length) yield entry;
      if (!depth) entry = null;
      line += 1;
      at += 1;
      continue;
    }
    entry ??= { line, startsBlank: /[ \t]/.test(letter), tokens: [], comment: '' };
    if (/[ \t\r\f]/.test(letter)) at += 1;
    else if (letter === ';') {
      const end = endOfLine(source, at);
      entry.comment += source.slice(at, end);
      at = end;
    } else if (letter === '(' || letter === ')') {
      depth += letter === '(' ? 1 : -1;
      if (letter === '(') opened = line;
      if (depth < 0) throw new UnreadableZoneFile(line, 'There is a closing parenthesis without an opening one.');
      at += 1;
    } else {
      count += 1;
      if (count > TOKENS_MAX) throw new UnreadableZoneFile(line, `The file has more than ${TOKENS_MAX} words.`);
      const { token, end } = tokenAt(source, at, line);
      entry.tokens.push({ ...token, isAdjoining: at === tokenEnd });
      tokenEnd = end;
      at = end;
    }
  }
  if (depth) throw new UnreadableZoneFile(opened, 'The parenthesis is not closed.');
  if (entry?.tokens.length) yield entry;
}

function endOfLine(source: string, at: number): number {
  const end = source.indexOf('\n', at);
  return end < 0 ? source.length : end;
}

type ReadToken = { token: Omit<Token, 'isAdjoining'>; end: number };

function tokenAt(source: string, start: number, line: number): ReadToken {
  const isQuoted = source[start] === '"';
  let at = isQuoted ? start + 1 : start;
  const bytes: Buffer[] = [];
  const plain = isQuoted ? PLAIN.quoted : PLAIN.bare;
  for (;;) {
    plain.lastIndex = at;
    const [letters = ''] = plain.exec(source) ?? [];
    if (letters) bytes.push(Buffer.from(letters));
    at += letters.length;
    const letter = source[at];
    if (letter === undefined || letter === '\n') {
      if (isQuoted) throw new UnreadableZoneFile(line, 'The quotation mark is not closed.');
      break;
    }
    if (isQuoted ? letter === '"' : /[ \t\r\f;()"]/.test(letter)) break;
    const [, digits] = letter === '\\' ? (/^\\(\d{3})/.exec(source.slice(at, at + 4)) ?? []) : [];
    if (digits !== undefined) {
      if (Number(digits) > 255) throw new UnreadableZoneFile(line, `\\${digits} is not a byte.`);
      bytes.push(Buffer.from([Number(digits)]));
      at += 4;
    } else {
      const from = letter === '\\' ? at + 1 : at;
      const point = source.codePointAt(from);
      if (point === undefined) throw new UnreadableZoneFile(line, 'The file ends within an escape.');
      bytes.push(Buffer.from(String.fromCodePoint(point)));
      at = from + (point > 0xffff ? 2 : 1);
    }
  }
  const raw = source.slice(isQuoted ? start + 1 : start, at);
  return { token: { bytes: Buffer.concat(bytes), raw, isQuoted }, end: isQuoted ? at + 1 : at };
}
