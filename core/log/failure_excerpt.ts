// The line or two of an output that say why its program failed, for a reason that people read. The output is that of
// any program: what is not known here is answered with the last line that says something.
import os from 'node:os';

export const FAILURE_EXCERPT_MAX = 300;
/** Lines before the last that are looked at. */
export const FAILURE_LINES_MAX = 200;
const LINE_MAX = 4_000;

/** Colours and other sequences for terminals (ECMA-48), control characters, and what turns or hides text in Unicode. */
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const INVISIBLE = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/g;
/** Frames of boxes and arrows before a text. */
const FRAME = /^[\s─-╿▶➤·•]+|(?<=^YN\d{4}: )[│├└┌·─\s]+/g;

/** Where a program was when it failed, and what stands around every failure. */
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
/** What npm says of itself and of the command behind an error. */
const NPM = /^npm (?:error|ERR!) ?/;
const NPM_NOISE =
  /^(code|errno|syscall|path|dest|command|signal|workspace|location) |^Lifecycle script |^\d+$|A complete log/;
/** `a.ts(3,7): error TS2322`, `./main.go:3:15: undefined`, `error[E0425]`: the first one is the cause. */
const COMPILER = /^\S+[:(]\d+[:,]\d+\)?:? \S|^\S+\.\w+:\d+: error|^error\[\w+\]/;
const EXCEPTION =
  /(^|[\s([])([\w.:]*(Error|Exception|Failure)( \[\w+\])?|error|ERROR|fatal|FATAL( ERROR)?|panic|Panic): \S/;
const MARKED = /^\s*[×✖✘] |^\W*\[?(ERROR|FATAL|error)\]? \S|\bERR_[A-Z]+_[A-Z_]+\b|\bYN00(?!00)\d\d: /;
const COMPLAINT =
  /\b(error|errors|failed|failure|cannot|can't|could not|unable|not found|no such|denied|refused|missing|invalid)\b/i;
/** The text is on the lines behind. */
const HEADING = /:$|^Failed to compile\.$/;
const CAUSE = /^\s*(cause|caused by): /i;
const FILE = /^\.{0,2}\/?[\w@[\]()./-]+\.\w+(:\d+)*$/;

/** Takes out of a text what is not to be shown. */
export type Hide = (text: string) => string;

/** One line of at most FAILURE_EXCERPT_MAX characters; '' where nothing says why. */
export function failureExcerpt(output: readonly string[], hide: Hide): string {
  const lines = output
    .slice(-FAILURE_LINES_MAX)
    .map((line) => cleanLine(hide(line.slice(0, LINE_MAX))))
    .filter((line) => line !== '');
  const found = ofNpm(lines) ?? excerptOf(lines.map((line) => line.replace(NPM, '')));
  return cutText(found.map(plainLine).join(' '), FAILURE_EXCERPT_MAX);
}

/** Removes what a terminal would not show, and keeps the indentation. */
function cleanLine(text: string): string {
  const plain = text.replaceAll(SEQUENCES, '').replaceAll(INVISIBLE, '');
  return messageOfJson(plain.replace(/^➤ /, '').trimEnd());
}

/** Loggers that write JSON lines have the text in one member. */
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

/** npm explains its own errors, those with a name, from the first line on. */
function ofNpm(lines: readonly string[]): string[] | null {
  const own = lines.filter((line) => NPM.test(line)).map((line) => line.replace(NPM, ''));
  if (!own.some((line) => /^code E[A-Z]/.test(line))) return null;
  const said = own.filter((line) => !NPM_NOISE.test(line) && !NOISE.some((noise) => noise.test(line)));
  return said.length === 0 ? null : said;
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

/** The line behind the frames of the last traceback, as far in as its first line. */
function ofPython(lines: readonly string[]): string | null {
  const start = lines.findLastIndex((line) => /^\s*Traceback \(most recent call last\):/.test(line));
  if (start < 0) return null;
  const depth = indentOf(lines[start] as string);
  return lines.slice(start + 1).find((line) => indentOf(line) <= depth) ?? null;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** A text of at most so many characters, without a half of one. */
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

/** Shells say 128 + number for a program that a signal ended. */
export function signalOf(code: number): { code: number | null; signal: string | null } {
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === code - 128)?.[0] ?? null;
  return { code: signal === null ? code : null, signal };
}

/** What others wrote, as the end of a reason. */
export function endSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

const HIDDEN = '***';
/** Shorter values are words and numbers: `prod`, `3000`. */
const VALUE_MIN = 6;
/** Values that say nothing to anybody. */
const PLAIN = new Set(['production', 'development', 'localhost', '127.0.0.1', '0.0.0.0']);
/** User and password of an address. */
const CREDENTIALS = /\b([a-z][a-z+.-]{0,20}:\/\/)[^\s/@'"]{1,500}@/gi;

/** Hides the values of variables, and user and password of every address. */
export function valuesHider(variables: Record<string, string>): Hide {
  const values = Object.values(variables)
    .flatMap((value) => [value, ...value.split('\n'), ...passwordOf(value)])
    .map((value) => value.trim())
    .filter((value) => value.length >= VALUE_MIN && !PLAIN.has(value))
    .sort((one, other) => other.length - one.length);
  return (text) =>
    values.reduce((left, value) => left.replaceAll(value, HIDDEN), text).replaceAll(CREDENTIALS, `$1${HIDDEN}@`);
}

/** Programs print the password of an address also by itself. */
function passwordOf(value: string): string[] {
  if (!/^[a-z][a-z+.-]*:\/\/.*@/i.test(value) || !URL.canParse(value)) return [];
  const { password } = new URL(value);
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
