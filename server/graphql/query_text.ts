// Limits of a GraphQL text that need no parser: one pass over its characters, a hundred times cheaper than parsing.
import { problem } from '../../core/errors';

/** Of brackets of all kinds: twice the levels that a query may have, and as much again for the values of arguments. */
const NESTING_MAX = 64;
/** Each belongs to a field with a selection, or to a value: twice the fields that a query may have. */
const BRACES_MAX = 1_000;

/**
 * Rejects texts far above the limits of any query. Strings and comments don't count.
 * @throws query_too_complex
 */
export function requireFlat(text: string): void {
  let depth = 0;
  let braces = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (letter === '"') at = endOfString(text, at);
    else if (letter === '#') at = endOfLine(text, at);
    else if (letter === '{' || letter === '[' || letter === '(') {
      depth += 1;
      if (letter === '{') braces += 1;
      if (depth > NESTING_MAX) throw problem('query_too_complex', 'The query is nested too deeply.');
      if (braces > BRACES_MAX)
        throw problem('query_too_complex', `The query has more than ${BRACES_MAX} selections and objects.`, {
          limit: BRACES_MAX,
        });
    } else if (letter === '}' || letter === ']' || letter === ')') depth -= 1;
  }
}

/**
 * GraphQL specification (October 2021), section 2.9.4: block strings end at three quotes that no backslash precedes.
 */
function endOfString(text: string, begin: number): number {
  if (!text.startsWith('"""', begin)) return endOfPlainString(text, begin);
  let end = text.indexOf('"""', begin + 3);
  while (end > 0 && text[end - 1] === '\\') end = text.indexOf('"""', end + 3);
  return end < 0 ? text.length : end + 2;
}

function endOfPlainString(text: string, begin: number): number {
  let at = begin + 1;
  while (at < text.length && text[at] !== '"' && text[at] !== '\n') at += text[at] === '\\' ? 2 : 1;
  return at;
}

function endOfLine(text: string, begin: number): number {
  const end = /[\n\r]/g;
  end.lastIndex = begin;
  return end.exec(text)?.index ?? text.length;
}
