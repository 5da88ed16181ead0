// Patterns of .dockerignore, by the rules of Docker (moby/patternmatcher, whose tables are a test). They differ from
// those of Git: a pattern begins at the folder, the last one that matches decides, and `!` also takes back what lies
// below a folder that was left out.

/** A pattern that Docker refuses too. Its message is a sentence. */
export class DockerPatternError extends Error {}

/**
 * Whether a path below the folder is left out.
 * @param file name of the file, for the error
 * @throws DockerPatternError
 */
export function parseDockerRules(text: string, file: string): (name: string) => boolean {
  const rules = patternsOf(text).map((line) => {
    const isException = line.startsWith('!');
    const pattern = toExpression(isException ? line.slice(1) : line);
    if (pattern === undefined) throw new DockerPatternError(`${file}: "${line}" is no pattern that Docker knows.`);
    return { isException, pattern };
  });
  return (name) => {
    let isOut = false;
    for (const { isException, pattern } of rules) if (isException === isOut && pattern.test(name)) isOut = !isOut;
    return isOut;
  };
}

function patternsOf(text: string): string[] {
  return text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .filter((line) => !line.startsWith('#') && line.trim())
    .map((line) => {
      const [, not = '', pattern = ''] = /^\s*(!?)\s*(.*?)\s*$/.exec(line) ?? [];
      return `${not}${pattern && cleanPath(pattern)}`;
    });
}

/** As filepath.Clean of Go, and without a slash in front. */
function cleanPath(given: string): string {
  const isAbsolute = given.startsWith('/');
  const parts: string[] = [];
  for (const part of given.split('/')) {
    if (part !== '..') parts.push(...(part && part !== '.' ? [part] : []));
    else if (parts.length && parts.at(-1) !== '..') parts.pop();
    else if (!isAbsolute) parts.push(part);
  }
  return parts.join('/') || (isAbsolute ? '/' : '.');
}

const ITEM = String.raw`(?:\\.|[^\]\\-])`;
const TOKEN = new RegExp(String.raw`\*\*/?|\*|\?|\[(\^?)((?:${ITEM}(?:-${ITEM})?)+)\]|\\.|[^[\\]`, 'gsuy');

/** Of a path that the pattern matches, or one of whose folders it matches; undefined where it is none. */
function toExpression(pattern: string): RegExp | undefined {
  if (!pattern) return undefined;
  // Docker compares the ends then, so that `**file` also matches `a-file`.
  const isSuffix = /^\*\*[^*?[\]\\]*$/.test(pattern);
  let end = 0;
  let text = '';
  for (const { 0: token, index, 1: not, 2: items } of pattern.matchAll(TOKEN)) {
    end = index + token.length;
    if (token.startsWith('**')) text += end === pattern.length ? '.*' : isSuffix && token === '**' ? '.*' : '(?:.*/)?';
    else if (token === '*' || token === '?') text += `[^/]${token === '*' ? '*' : ''}`;
    else if (items !== undefined) text += `[${not}${items.replace(/\\(.)|([[^])/gsu, escapeItem)}]`;
    else text += escapeLiteral(token.length > 1 && token.startsWith('\\') ? token.slice(1) : token);
  }
  try {
    return end === pattern.length ? new RegExp(`^${text}(?:/.*)?$`, 'su') : undefined;
  } catch {
    return undefined;
  }
}

const escapeItem = (_: string, escaped?: string, plain?: string): string =>
  (escaped ?? plain ?? '').replace(/[\\^[\]-]/, '\\$&');
const escapeLiteral = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
