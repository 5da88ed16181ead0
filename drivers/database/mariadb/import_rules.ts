// What becomes of each statement of a dump of MySQL or MariaDB: most are run as they are, as the first user of the
// database. What is of the server that the dump is of is left out, and said. Rows are never changed.
import { isAtLeast } from '../../../core/process/version_output';

export type Ruling =
  | { do: 'run'; text: string; definers: string[] }
  | { do: 'insert'; text: string; table: string }
  | { do: 'skip'; missing?: { kind: string; name: string; reason: string } }
  | { do: 'database'; name: string }
  | { do: 'refuse'; reason: string };

const NAME = '(?:`(?:[^`]|``)*`|[\\w$\\x80-\\xff]+)';
const QUALIFIED = `${NAME}(?:\\s*\\.\\s*${NAME})?`;
const ACCOUNT_PART = "(?:`(?:[^`]|``)*`|'(?:[^'\\\\]|\\\\.|'')*'|\"[^\"]*\"|[\\w$.%]+)";
const DEFINER = new RegExp(
  `\\bDEFINER\\s*=\\s*(${ACCOUNT_PART}(?:\\s*@\\s*${ACCOUNT_PART})?|CURRENT_USER(?:\\(\\))?)`,
  'i',
);
const INSERT = new RegExp(
  `^(?:insert|replace)\\s+(?:(?:low_priority|delayed|high_priority|ignore)\\s+)*(?:into\\s+)?(${QUALIFIED})`,
  'i',
);
const USE = new RegExp(`^use\\s+(${NAME})\\s*$`, 'i');
/** The server runs what is in comments of these forms; MariaDB leaves out what only newer MySQL has. */
const VERSION_COMMENT = /^(?:\/\*M?!\d*\s*)+/;

const SERVER = 'It concerns the whole server.';
const ROLE = 'Users of a database are made with the API.';

const SKIPPED: readonly [RegExp, string?, string?][] = [
  [/^set\s+(@@global\.|global\s|persist|@@persist)/i, 'server_setting', SERVER],
  [/^set\s+[^;]*(@@(session\.)?sql_log_bin|\bsql_log_bin)\s*:?=/i],
  [/^(create|drop|alter)\s+(database|schema)\b/i],
  [/^(create|alter|drop|rename)\s+(user|role)\b/i, 'user', ROLE],
  [/^(grant|revoke|set\s+password|set\s+(default\s+)?role)\b/i, 'privileges', ROLE],
  [/^(lock|unlock)\s+tables?\b/i],
  [/^(flush|reset|purge|change\s+(master|replication)|start\s+(slave|replica)|stop\s+(slave|replica))\b/i],
  [/^(install|uninstall)\s+(plugin|soname|component)\b/i, 'plugin', SERVER],
  [/^(create|alter|drop)\s+(undo\s+)?(tablespace|server|logfile)\b/i, 'server_object', SERVER],
  [/^(begin|commit|rollback|start\s+transaction|savepoint|release)\b/i],
];
/** Commands of the client programs, and what would read files. */
const REFUSED: readonly [RegExp, string][] = [
  [/^load\s+(data|xml)\b/i, 'LOAD DATA reads a file. Make a dump that has the rows as INSERT statements.'],
  [
    /^(source|system|tee|notee|pager|edit|connect|charset|warnings|prompt)\b/i,
    'It is a command of a client program. Only SQL is run.',
  ],
  [/^\\/, 'It is a command of a client program. Only SQL is run.'],
];

/** @param version of the server: collations of MySQL 8 have relatives since 10.10 */
export function rulingOf(text: string, version: string): Ruling {
  const head = text.replace(VERSION_COMMENT, '');
  const use = USE.exec(head.replace(/\*\/\s*$/, ''))?.[1];
  if (use !== undefined) return { do: 'database', name: unquoted(use) };
  for (const [pattern, reason] of REFUSED) if (pattern.test(head)) return { do: 'refuse', reason };
  for (const [pattern, kind, reason] of SKIPPED) {
    if (!pattern.test(head)) continue;
    const name = head
      .replaceAll(/\s+/g, ' ')
      .slice(0, 40)
      .replace(/ ?['"=(].*$/, '');
    return kind && reason ? { do: 'skip', missing: { kind, name, reason } } : { do: 'skip' };
  }
  const insert = INSERT.exec(head)?.[1];
  if (insert !== undefined) return { do: 'insert', text, table: lastPart(insert) };
  const definers: string[] = [];
  const owned = text.replace(DEFINER, (_, account: string) => {
    definers.push(account.replaceAll(/[`'"]/g, ''));
    return '';
  });
  return { do: 'run', text: withKnownCollations(owned, version), definers };
}

/** By the rules of another version of Unicode, and without those of a language. */
function withKnownCollations(text: string, version: string): string {
  if (!text.includes('0900')) return text;
  const related = isAtLeast(version, 10, 10) ? 'utf8mb4_uca1400_nopad_$1' : 'utf8mb4_unicode_520_nopad_ci';
  return text
    .replaceAll(/\butf8mb4_[a-z_]*0900_bin\b/g, 'utf8mb4_nopad_bin')
    .replaceAll(/\butf8mb4_(?:[a-z_]*_)?0900_(a[is]_c[is])(?:_ks)?\b/g, related);
}

const DEFINITION = new RegExp(
  String.raw`^create\s+(?:or\s+replace\s+)?(?:algorithm\s*=\s*\w+\s+)?(?:sql\s+security\s+\w+\s+)?(?:aggregate\s+)?` +
    `(view|trigger|procedure|function|event)\\s+(?:if\\s+not\\s+exists\\s+)?(${QUALIFIED})`,
  'i',
);

/** What a statement defines besides tables, without its definer; null where it is none of these. */
export function definitionOf(text: string): { kind: string; name: string } | null {
  const head = text
    .slice(0, 1000)
    .replaceAll(/\/\*M?!\d*\s*|\*\//g, ' ')
    .trim()
    .replaceAll(/\s+/g, ' ');
  const found = DEFINITION.exec(head);
  return found && { kind: found[1]!.toLowerCase(), name: lastPart(found[2]!) };
}

/** Where the name of the table of an INSERT ends. */
export function endOfInsertHead(text: string): number {
  const rest = text.replace(VERSION_COMMENT, '');
  return text.length - rest.length + (INSERT.exec(rest)?.[0].length ?? 0);
}

/** How many rows an INSERT has: parts in parentheses after VALUES, outside of strings. */
export function rowsOf(text: string): number {
  const [head] = /^[^(]*(?:\([^)]*\)\s*)?values?\s*(?=\()/i.exec(text) ?? [];
  if (head === undefined) return 0;
  const tokens = /[()'"\\]/g;
  let [depth, rows, quote] = [0, 0, ''];
  tokens.lastIndex = head.length;
  for (let found = tokens.exec(text); found; found = tokens.exec(text)) {
    const [char] = found;
    if (char === '\\') tokens.lastIndex += quote === '' ? 0 : 1;
    else if (quote !== '') quote = char === quote ? '' : quote;
    else if (char === "'" || char === '"') quote = char;
    else if (char === '(') depth += 1;
    else if ((depth -= 1) === 0) rows += 1;
  }
  return rows;
}

function lastPart(name: string): string {
  return unquoted(/(?:`(?:[^`]|``)*`|[^.`\s]+)\s*$/.exec(name)?.[0].trim() ?? name);
}

function unquoted(name: string): string {
  return name.startsWith('`') ? name.slice(1, -1).replaceAll('``', '`') : name;
}
