// Names of the database that a dump is of: what is imported has to mean the database that it comes into. Strings and
// comments stay as they are.

/** Bytes as characters (latin1). */
interface Token {
  kind: 'name' | 'dot' | 'other';
  /** Of a name, without its quotes. */
  name: string;
  start: number;
  end: number;
}

/**
 * Strings, comments, code in comments (`/*!50001 …`), quoted names, names, dots, and what is left. Text in double
 * quotes is a string, unless the dump sets ANSI_QUOTES, which no program for dumps does.
 */
const TOKENS = new RegExp(
  [
    String.raw`'(?:[^'\\]|\\[^]|'')*'`,
    String.raw`"(?:[^"\\]|\\[^]|"")*"`,
    String.raw`\/\*M?!\d*|\*\/`,
    String.raw`\/\*[^]*?\*\/`,
    String.raw`--(?=[\s\0]|$)[^\n]*|#[^\n]*`,
    '(?<quoted>`(?:[^`]|``)*`)',
    String.raw`@{1,2}[\w$.\x80-\xff]*`,
    String.raw`(?<plain>[\w$\x80-\xff]+)`,
    String.raw`(?<dot>\.)`,
    String.raw`\s+`,
    '[^]',
  ].join('|'),
  'g',
);

const BEFORE_COLUMNS =
  /^(select|distinct|where|and|or|not|by|on|when|then|else|case|having|set|in|like|is|between|return|if)$/i;

/**
 * Replaces `from` where it names a database: before a dot, and not behind one. A statement that has an alias or a table
 * of the same name is changed only where a name has three parts. @param rewritten where the last of the text ends that
 * may be changed, as rows behind it may not
 */
export function withDatabaseName(text: string, from: string, to: string, rewritten = text.length): string {
  if (!text.toLowerCase().includes(from.toLowerCase())) return text;
  const tokens = tokensOf(text.slice(0, rewritten));
  const isNamed = (at: number): boolean =>
    tokens[at]?.kind === 'name' && tokens[at].name.toLowerCase() === from.toLowerCase();
  const isDot = (at: number): boolean => tokens[at]?.kind === 'dot';
  const isFirst = (at: number): boolean => isNamed(at) && !isDot(at - 1);
  const isShared = tokens.some((_, at) => isFirst(at) && !isDot(at + 1) && isTable(tokens[at - 1]));
  const pieces: string[] = [];
  let last = 0;
  for (const [at, token] of tokens.entries()) {
    const isDatabase = isFirst(at) && isDot(at + 1) && tokens[at + 2]?.kind === 'name';
    if (!isDatabase || (isShared && !isDot(at + 3))) continue;
    pieces.push(text.slice(last, token.start), quotedName(to));
    last = token.end;
  }
  return pieces.length ? pieces.join('') + text.slice(last) : text;
}

/** Whether a name behind this is that of a table, or an alias, and not of a column. */
function isTable(before: Token | undefined): boolean {
  return before?.kind === 'name' && !BEFORE_COLUMNS.test(before.name);
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (const found of text.matchAll(TOKENS)) {
    const [whole] = found;
    const { quoted, plain, dot } = found.groups!;
    const place = { start: found.index, end: found.index + whole.length };
    if (quoted !== undefined) tokens.push({ kind: 'name', name: quoted.slice(1, -1).replaceAll('``', '`'), ...place });
    else if (plain !== undefined) tokens.push({ kind: 'name', name: plain, ...place });
    else if (dot !== undefined) tokens.push({ kind: 'dot', name: '', ...place });
    // A dot belongs to names on both sides of a blank.
    else if (!/^(\s|\/\*|\*\/|--|#)/.test(whole)) tokens.push({ kind: 'other', name: '', ...place });
  }
  return tokens;
}

function quotedName(name: string): string {
  return `\`${Buffer.from(name).toString('latin1').replaceAll('`', '``')}\``;
}

/** The database that the first lines of a dump name, as `mysqldump` and phpMyAdmin write them; null in other lines. */
export function databaseOfComment(line: string): string | null {
  const found = /^-- (?:Host: \S+\s+)?Database: (`?)(\S+)\1\s*$/.exec(line)?.[2];
  return found === undefined || found === '' ? null : found.replace(/`$/, '');
}
