// Extracts the one or two lines of a program's output that explain its failure. The output is from any program: the
// fallback is the last meaningful line.
import os from 'node:os';

export const FAILURE_EXCERPT_MAX = 300;
/** Number of last lines that are searched. */
export const FAILURE_LINES_MAX = 200;
const LINE_MAX = 4_000;

/** Terminal escape sequences (ECMA-48), control characters, and Unicode characters that reorder or hide text. */
export const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const INVISIBLE = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/g;
/** Box drawing characters and arrows before a text. */
const FRAME = /^[\s─-╿▶➤·•]+|(?<=^YN\d{4}: )[│├└┌·─\s]+/g;

/** Stack frames, and boilerplate around failures. */
const NOISE = [
  /^[^\p{L}\p{N}]*$/u,
  /^\s+at .*[:(<]/,
  /^\s*File ".*", line \d+/,
  /^\s*(- \/|code: |errno: |syscall: |requireStack: |Require stack:|\d+: 0x)/,
  /^\s*>? *\d* *\|/,
  /^(> |Node\.js v\d|\(Use `node --trace|info |npm (notice|warn)|ELIFECYCLE|YN0000: )/i,
  /^(Killed|Terminated|Aborted|Segmentation fault)( \(core dumped\))?$/,
  /^(A complete log of this run|error Command failed with exit code|make(\[\d+\])?: \*\*\* )/,
];
/** Output of npm about itself and about the failed command. */
const NPM = /^npm (?:error|ERR!) ?/;
const NPM_NOISE =
  /^(code|errno|syscall|path|dest|command|signal|workspace|location) |^Lifecycle script |^\d+$|A complete log/;
/** `a.ts(3,7): error TS2322`, `./main.go:3:15: undefined`, `error[E0425]`: the first error is the cause. */
const COMPILER = /^\S+[:(]\d+[:,]\d+\)?:? \S|^\S+\.\w+:\d+: error|^error\[\w+\]/;
const EXCEPTION =
  /(^|[\s([])([\w.:]*(Error|Exception|Failure)( \[\w+\])?|error|ERROR|fatal|FATAL( ERROR)?|panic|Panic): \S/;
const MARKED = /^\s*[×✖✘] |^\W*\[?(ERROR|FATAL|error)\]? \S|\bERR_[A-Z]+_[A-Z_]+\b|\bYN00(?!00)\d\d: /;
const COMPLAINT =
  /\b(error|errors|failed|failure|cannot|can't|could not|unable|not found|no such|denied|refused|missing|invalid)\b/i;
/** A heading: the text is on the following lines. */
const HEADING = /:$|^Failed to compile\.$/;
const CAUSE = /^\s*(cause|caused by): /i;
const FILE = /^\.{0,2}\/?[\w@[\]()./-]+\.\w+(:\d+)*$/;

/** Removes sensitive values from a text. */
export type Hide = (text: string) => string;

/** One line of at most FAILURE_EXCERPT_MAX characters; '' where no line explains the failure. */
export function failureExcerpt(output: readonly string[], hide: Hide): string {
  const lines = output
    .slice(-FAILURE_LINES_MAX)
    .map((line) => cleanLine(hide(line.slice(0, LINE_MAX))))
    .filter((line) => line !== '');
  const found = ofNpm(lines) ?? excerptOf(lines.map((line) => line.replace(NPM, '')));
  return cutText(found.map(plainLine).join(' '), FAILURE_EXCERPT_MAX);
}

/** Removes invisible characters, and keeps the indentation. */
function cleanLine(text: string): string {
  const plain = text.replaceAll(SEQUENCES, '').replaceAll(INVISIBLE, '');
  return messageOfJson(plain.replace(/^➤ /, '').trimEnd());
}

/** JSON log lines have the text in one member. */
function messageOfJson(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { msg, message } = JSON.parse(line) as Record<string, unknown>;
    return ([msg, message].find((one) => typeof one === 'string' && one !== '') as string) ?? line;
  } catch {
    return line;
  }
}

function plainLine(line: string): string {
  return line
    .replaceAll(FRAME, '')
    .replace(/^[×✖✘]\s+/, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** npm explains its own errors, which have a code, from the first line on. */
function ofNpm(lines: readonly string[]): string[] | null {
  const own = lines.filter((line) => NPM.test(line)).map((line) => line.replace(NPM, ''));
  if (!own.some((line) => /^code E[A-Z]/.test(line))) return null;
  const messages = own.filter((line) => !NPM_NOISE.test(line) && !NOISE.some((noise) => noise.test(line)));
  return messages.length === 0 ? null : messages;
}

function excerptOf(all: readonly string[]): string[] {
  const lines = all.filter((line) => !NPM_NOISE.test(line) && !NOISE.some((noise) => noise.test(line)));
  const exception = ofPython(all);
  if (exception !== null) return [exception];
  const at = [
    lines.findIndex((line) => COMPILER.test(line)),
    lines.findLastIndex((line) => EXCEPTION.test(line)),
    lines.findLastIndex((line) => MARKED.test(line)),
    lines.findLastIndex((line) => COMPLAINT.test(line)),
    lines.length - 1,
  ].find((index) => index >= 0);
  if (at === undefined) return [];
  const [before = '', line = '', ...behind] = ['', ...lines].slice(at);
  const heading = HEADING.test(before) ? [before] : FILE.test(before) ? [before] : [];
  return [...heading, line, ...(HEADING.test(line) || CAUSE.test(behind[0] ?? '') ? behind : [])];
}

/** The line after the last traceback, with the same indentation as its first line. */
function ofPython(lines: readonly string[]): string | null {
  const start = lines.findLastIndex((line) => /^\s*Traceback \(most recent call last\):/.test(line));
  if (start < 0) return null;
  const depth = indentOf(lines[start] as string);
  return lines.slice(start + 1).find((line) => indentOf(line) <= depth) ?? null;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Truncates a text to `max` characters, without splitting one. */
export function cutText(text: string, max: number): string {
  return text.length <= max
    ? text.toWellFormed()
    : `${text
        .slice(0, max - 1)
        .toWellFormed()
        .replace(/\ufffd$/, '')}…`;
}

/** `ended with exit code 1`, `was ended by signal 9 (SIGKILL)`. */
export function describeEnd({ code, signal }: { code: number | null; signal: string | null }): string {
  if (code !== null) return `ended with exit code ${code}`;
  const number = os.constants.signals[signal as NodeJS.Signals];
  return number === undefined ? 'was ended by a signal' : `was ended by signal ${number} (${signal})`;
}

/** Shells use the exit code 128 + number for a program killed by a signal. */
export function signalOf(code: number): { code: number | null; signal: string | null } {
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === code - 128)?.[0] ?? null;
  return { code: signal === null ? code : null, signal };
}

/** Ends untrusted text with a full stop. */
export function endSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

const HIDDEN = '***';
/** Shorter values are common words and numbers: `prod`, `3000`. */
const VALUE_MIN = 6;
/** Values that are not sensitive. */
const PLAIN = new Set(['production', 'development', 'localhost', '127.0.0.1', '0.0.0.0']);
/** User and password in a URL. */
const CREDENTIALS = /\b([a-z][a-z+.-]{0,20}:\/\/)[^\s/@'"]{1,500}@/gi;

/** Hides values of variables, and user and password of all URLs. */
export function valuesHider(variables: Record<string, string>): Hide {
  const values = Object.values(variables)
    .flatMap((value) => [value, ...value.split('\n'), ...passwordOf(value)])
    .map((value) => value.trim())
    .filter((value) => value.length >= VALUE_MIN && !PLAIN.has(value))
    .sort((one, other) => other.length - one.length);
  return (text) =>
    values.reduce((left, value) => left.replaceAll(value, HIDDEN), text).replaceAll(CREDENTIALS, `$1${HIDDEN}@`);
}

/** Programs may print the password of a URL separately. */
function passwordOf(value: string): string[] {
  if (!/^[a-z][a-z+.-]*:\/\/.*@/i.test(value) || !URL.canParse(value)) return [];
  const { password } = new URL(value);
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
