// Files of variables, as dotenv reads them: comments, `export`, quotes, several lines in quotes, either line end.
import { usageFailure } from './failure';

const QUOTED = /^(["'`])((?:\\.|(?!\1)[^\\])*)\1[ \t]*(?:#[^\n]*)?$/s;
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
    const [, name, begun = ''] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*([^]*)$/.exec(line) ?? [];
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
  return value.replace(/(?:^|\s+)#[^]*$/, '').trim();
}

/** Lines that `parseDotenv` reads as they were. Where there is a form that all programs read alike, they have it. */
export function formatDotenv(variables: Iterable<readonly [string, string]>): string {
  return [...variables].map(([name, value]) => `${name}=${sharedForm(value) ?? escapedForm(value)}\n`).join('');
}

/** Names of values that dotenv, `node --env-file` and shells (`. ./.env`) do not read alike in any form. */
export function namesWithoutForm(variables: Iterable<readonly [string, string]>): string[] {
  return [...variables].flatMap(([name, value]) => (sharedForm(value) === undefined ? [name] : []));
}

/** Names of values that python-dotenv alone reads otherwise: it takes them for escapes and references. */
export function namesForPython(variables: Iterable<readonly [string, string]>): string[] {
  return [...variables].flatMap(([name, value]) => (/\\\\|\$\{/.test(value) ? [name] : []));
}

/** What a shell, dotenv or Node changes in double quotes; what stays are harmless dollar signs and backslashes. */
const CHANGED_IN_DOUBLE = /["`]|\$(?![\s.,:;/%=)]|$)|\\(?![cdghj-mo-qswyzA-TV-Z.,:;/ -])/;

/**
 * Compared with dotenv 17, Node 20 and 24, bash, dash and Docker Compose. In single quotes all of them keep all, also
 * line ends, but dotenv takes a backslash before the last quote for an escape; in backticks a shell runs a program.
 */
function sharedForm(value: string): string | undefined {
  if (/^[\w./:@%+,=-]*$/.test(value)) return value;
  // dotenv makes a line feed of it.
  if (value.includes('\r')) return undefined;
  if (!value.includes("'") && !value.endsWith('\\')) return `'${value}'`;
  return CHANGED_IN_DOUBLE.test(value) ? undefined : `"${value}"`;
}

/** For this program alone. */
function escapedForm(value: string): string {
  return `"${value
    .replace(/[\\"$]/g, '\\$&')
    .replace(/\n/g, '\\n')
    .replace(/\r/g, '\\r')}"`;
}
