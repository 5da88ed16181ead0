// Rules by which a copy of a database replaces values: what both the request and the engines know of them.

export const maskMethods = ['set_null', 'hash', 'fake_email', 'fake_name', 'constant', 'expression'] as const;

export type MaskMethod = (typeof maskMethods)[number];

/** `table`: with its schema or without. `value`: of `constant` and `expression`; null for the others. */
export interface MaskRule {
  table: string;
  column: string;
  rule: MaskMethod;
  value: string | null;
}

type Dialect = 'postgresql' | 'mysql';

const QUOTES: Record<Dialect, string> = { postgresql: `'"`, mysql: `'"\`` };
const COMMENTS: Record<Dialect, readonly string[]> = {
  postgresql: ['--', '/*'],
  mysql: ['--', '/*', '#'],
};

/**
 * What keeps a text from being one expression, after "must"; null: nothing. It stands between parentheses in a
 * statement, which it must not leave: whoever could would change what other rules do.
 */
export function expressionMistake(text: string, dialect: Dialect): string | null {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] as string;
    if (char === '\0') return 'not hold NUL characters';
    if (char === ';') return 'be one expression, without a semicolon';
    if (COMMENTS[dialect].some((mark) => text.startsWith(mark, at))) return 'not hold comments';
    const end = endOfQuoted(text, at, dialect);
    if (end === null) return 'end what it quotes';
    if (end > at) at = end - 1;
    else if (char === '(') depth += 1;
    else if (char === ')') depth -= 1;
    if (depth < 0) return 'open each parenthesis that it closes';
  }
  return depth === 0 ? null : 'close each parenthesis that it opens';
}

/** Behind what is quoted at this position; the position itself: nothing is. null: it does not end. */
function endOfQuoted(text: string, at: number, dialect: Dialect): number | null {
  const char = text[at] as string;
  if (dialect === 'postgresql' && char === '$') return endOfDollars(text, at);
  if (!QUOTES[dialect].includes(char)) return at;
  const hasEscapes =
    char !== '`' && (dialect === 'mysql' || (char === "'" && /(?:^|[^\w$\u0080-\uffff])e$/i.test(text.slice(0, at))));
  for (let next = at + 1; next < text.length; next += 1) {
    if (hasEscapes && text[next] === '\\') next += 1;
    else if (text[next] === char) {
      if (text[next + 1] !== char) return next + 1;
      next += 1;
    }
  }
  return null;
}

/** `$tag$ … $tag$`, which does not begin within a name. */
function endOfDollars(text: string, at: number): number | null {
  const [tag] = /^\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/.exec(text.slice(at)) ?? [];
  if (tag === undefined || /[\w$\u0080-\uffff]/.test(text[at - 1] ?? '')) return at;
  const end = text.indexOf(tag, at + tag.length);
  return end === -1 ? null : end + tag.length;
}

const PERSONAL = new Set([
  ...['email', 'emails', 'mail', 'phone', 'telephone', 'tel', 'mobile', 'cellphone', 'fax', 'name', 'names', 'surname'],
  ...['firstname', 'lastname', 'fullname', 'middlename', 'nickname', 'username', 'login', 'maiden', 'address', 'addr'],
  ...['street', 'zip', 'zipcode', 'postcode', 'postal', 'postalcode', 'birth', 'birthday', 'birthdate', 'birthplace'],
  ...['dob', 'iban', 'bic', 'ssn', 'passport', 'ip', 'ipv4', 'ipv6', 'ipaddress', 'taxid', 'gender', 'password'],
]);
/** Last words of columns that only say something about such a value. */
const ABOUT = new Set(['id', 'at', 'count', 'type', 'verified', 'confirmed', 'enabled']);

/** Whether a column looks as if it held personal values, by the words of its name. */
export function looksPersonal(column: string): boolean {
  const words = column
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean);
  return words.some((word) => PERSONAL.has(word)) && !ABOUT.has(words.at(-1) ?? '');
}
