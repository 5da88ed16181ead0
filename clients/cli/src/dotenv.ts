// Files of variables, as dotenv reads them: comments, `export`, quotes, several lines in quotes, either line end.
import { usageFailure } from './failure';

const QUOTED = /^(["'`])((?:\\.|(?!\1)[^\\])*)\1[ \t]*(?:#.*)?$/s;
const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t' };

/** @throws Failure with the number of the line, never with what it says: it may be a secret */
export function parseDotenv(text: string, file: string): Map<string, string> {
  const lines = text
    .replace(/^\uFEFF/, '')
    .replace(/\r\n?/g, '\n')
    .split('\n');
  const found = new Map<string, string>();
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] as string;
    if (/^\s*(#|$)/.test(line)) continue;
    const [, name, begun = ''] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*(.*)$/.exec(line) ?? [];
    if (!name) throw usageFailure(`${file}, line ${index + 1}: expected NAME=value.`);
    const first = index;
    let value = begun;
    if (/^["'`]/.test(value)) {
      while (!QUOTED.test(value) && index + 1 < lines.length) value += `\n${lines[(index += 1)]}`;
      if (!QUOTED.test(value)) throw usageFailure(`${file}, line ${first + 1}: a quote is not closed.`);
    }
    found.set(name, unquote(value));
  }
  return found;
}

function unquote(value: string): string {
  const [, quote, inside = ''] = QUOTED.exec(value) ?? [];
  if (quote === '"')
    return inside.replace(/\\([^])/g, (whole, one: string) => ESCAPES[one] ?? (/["\\$]/.test(one) ? one : whole));
  if (quote) return inside;
  return value.replace(/(?:^|\s+)#.*$/, '').trim();
}

/** Lines that `parseDotenv` reads as they were. */
export function formatDotenv(variables: Iterable<readonly [string, string]>): string {
  return [...variables].map(([name, value]) => `${name}=${quoteValue(value)}\n`).join('');
}

function quoteValue(value: string): string {
  if (/^[\w./:@%+,=-]*$/.test(value)) return value;
  // Single quotes keep everything, and nothing is put in for a dollar sign.
  if (!/['\\\n\r]/.test(value)) return `'${value}'`;
  return `"${value
    .replace(/[\\"$]/g, '\\$&')
    .replace(/\n/g, '\\n')
    .replace(/\r/g, '\\r')}"`;
}
