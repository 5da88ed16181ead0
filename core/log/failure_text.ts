// What a program printed about its failure, in a form that a tenant may read.
import { cutText } from './failure_excerpt';

const CHARACTERS_MAX = 300;
/** More is not looked at: a tenant may have a say in the text, and patterns take longer the longer it is. */
const LINE_CHARACTERS_MAX = 1_000;
const FAILURE = /\b(error|ERROR|fatal|FATAL|PANIC):/;
/** Lines that go with the one before. */
const MORE = /^(\S+: )?(detail|hint|context):/i;

/**
 * The first error with its details, without paths of the host and without passwords; null where nothing was printed.
 * @param text stderr, or a line of a log
 */
export function failureTextOf(text: string): string | null {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const first = Math.max(
    0,
    lines.findIndex((line) => FAILURE.test(line)),
  );
  const [line, ...rest] = lines.slice(first);
  if (line === undefined) return null;
  const end = rest.findIndex((one) => !MORE.test(one));
  return cleanFailureText([line, ...rest.slice(0, end < 0 ? 2 : Math.min(end, 2))].join(' '));
}

/** An address at the cut is left out: the sign after its password may be missing. */
function shortLine(line: string): string {
  const text = line.slice(0, 8 * LINE_CHARACTERS_MAX).replaceAll(/\s+/g, ' ');
  if (text.length <= LINE_CHARACTERS_MAX) return text;
  return `${text.slice(0, LINE_CHARACTERS_MAX).replace(/\S+:\/\/\S*$/, '')}…`;
}

/** The text on one line, without paths of the host, passwords and control characters. */
export function cleanFailureText(text: string, max = CHARACTERS_MAX): string {
  const clean = shortLine(text)
    .replaceAll(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1…@')
    .replaceAll(/\b(password|passwd|secret|token)(\s*[=:]?\s*)('[^']*'|"[^"]*"|(?<=[=:]\s*)\S+)/gi, '$1$2…')
    .replaceAll(/(^|[\s"'(=:])\/(?!\/)[^\s"'():,;]+/g, '$1…')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return cutText(clean, max);
}
