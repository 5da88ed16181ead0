// Variables as a .env file has them: KEY=VALUE lines, comments, `export`, and values in quotes over several lines.
import { UsageError } from './command';

const KEY = /^[ \t]*(?:export[ \t]+)?([^\s=#]+)[ \t]*=[ \t]*/;
const VALUE = /("(?:\\[^]|[^"\\])*"|'[^']*'|`[^`]*`|(?:[^\s"'`#][^\n]*?)?)/;
const END = /(?:[ \t]+#[^\n]*)?[ \t]*$/;
const ASSIGNMENT = new RegExp(KEY.source + VALUE.source + END.source, 'gm');
const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' };

/**
 * The variables of a file. Values are taken as they stand, `$` included; only double quotes have escapes.
 * @throws UsageError that names the line, never its text, which may be a secret
 */
export function parseEnvFile(text: string): { key: string; value: string }[] {
  const lines = text.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n');
  const variables: { key: string; value: string }[] = [];
  // A parsed assignment is replaced by its line breaks, so that lines keep their numbers.
  const left = lines.replace(ASSIGNMENT, (all: string, key: string, value: string) => {
    variables.push({ key, value: unquoted(value) });
    return all.replace(/[^\n]/g, '');
  });
  const wrong = left.split('\n').findIndex((line) => !/^\s*(#|$)/.test(line));
  if (wrong >= 0) throw new UsageError(`line ${wrong + 1} of the file is not KEY=VALUE`);
  return variables;
}

function unquoted(value: string): string {
  const quote = value.charAt(0);
  if (quote === "'" || quote === '`') return value.slice(1, -1);
  if (quote !== '"') return value.trim();
  return value.slice(1, -1).replace(/\\([^])/g, (all, letter: string) => ESCAPES[letter] ?? all);
}
