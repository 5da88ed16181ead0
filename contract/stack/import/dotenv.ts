// Files of variables: `.env` and what `env_file` names.

interface Line {
  key: string;
  value: string;
  line: number;
  /** In single quotes: what looks like a variable is none. */
  isLiteral: boolean;
}

/** Keys and values, in their order, each with its line. */
export function readDotenv(text: string): Line[] {
  const found: Line[] = [];
  let line = 0;
  for (let at = 0; at < text.length;) {
    line += 1;
    const next = text.indexOf('\n', at);
    const end = next < 0 ? text.length : next;
    const [, before = '', key] = /^(\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=[ \t]*)/.exec(text.slice(at, end)) ?? [];
    const from = at + before.length;
    const quote = text[from] === '"' || text[from] === "'" ? (text[from] as string) : '';
    const close = key && quote ? endOf(text, quote, from + 1) : -1;
    at = close < 0 ? end + 1 : close + 1;
    if (!key) continue;
    if (close < 0) {
      found.push({ key, value: withoutComment(text.slice(from, end)), line, isLiteral: false });
      continue;
    }
    const value = text.slice(from + 1, close);
    found.push({ key, value: quote === '"' ? unescaped(value) : value, line, isLiteral: quote === "'" });
    // A quoted value may have several lines; what is behind it is a comment.
    line += value.split('\n').length - 1;
    const rest = text.indexOf('\n', close);
    at = rest < 0 ? text.length : rest + 1;
  }
  return found;
}

function withoutComment(text: string): string {
  const comment = text.startsWith('#') ? 0 : text.search(/\s#/);
  return (comment < 0 ? text : text.slice(0, comment)).trim();
}

function endOf(text: string, quote: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (quote === '"' && text[at] === '\\') at += 1;
    else if (text[at] === quote) return at;
  }
  return -1;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

const unescaped = (text: string): string => text.replace(/\\([nrt"\\$])/g, (_, one: string) => ESCAPES[one] ?? one);
