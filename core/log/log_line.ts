// Definitions of log lines that all parts share.

export type LogSource = 'app' | 'router' | 'system';
export type DatabaseLogSource = 'server' | 'slow_query' | 'pooler';
export type LogStep = 'build' | 'release' | 'deploy';
export type LogLevel = 'debug' | 'info' | 'warning' | 'error';

/** Maximum UTF-8 length of a message; longer ones are truncated. */
const LOG_MESSAGE_BYTES_MAX = 16 * 1024;

/** A message that can be stored: without NUL and lone surrogates, truncated to the maximum length. */
export function cleanMessage(text: string): string {
  const whole = text.includes('\0') ? text.replaceAll('\0', '') : text;
  const clean = whole.isWellFormed() ? whole : whole.toWellFormed();
  // Each UTF-16 code unit takes at most three bytes.
  if (clean.length * 3 <= LOG_MESSAGE_BYTES_MAX || Buffer.byteLength(clean) <= LOG_MESSAGE_BYTES_MAX) return clean;
  return cut(Buffer.from(clean));
}

/** Never splits a character: continuation bytes start with the bits 10. */
function cut(bytes: Buffer): string {
  let end = LOG_MESSAGE_BYTES_MAX;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

const LEVELS_BY_WORD: Record<string, LogLevel> = {
  trace: 'debug',
  debug: 'debug',
  verbose: 'debug',
  info: 'info',
  information: 'info',
  notice: 'info',
  warn: 'warning',
  warning: 'warning',
  error: 'error',
  err: 'error',
  fatal: 'error',
  critical: 'error',
  crit: 'error',
  alert: 'error',
  emergency: 'error',
  panic: 'error',
};

/** `ERROR: x`, `[warn] x`, `2026-01-31 09:30:00 ERROR x`, `level=error`: the level is near the start. */
const LEVEL_WORDS = 'trace|debug|verbose|info|notice|warn|warning|error|fatal|critical|panic';
const PREFIX = new RegExp(`^(?:[\\d:.,TZ+\\- /[\\]]{8,40}\\s*)?[[(<]?(${LEVEL_WORDS})[\\])>]?(?=[:\\s|\\]-]|$)`, 'i');
const PAIR = /\blevel=["']?([a-z]+)/i;
const MEMBER = /"(?:level|severity|levelname|log\.level)"\s*:\s*(?:"([A-Za-z]+)"|(\d+))/;
/** Length of the prefix that is searched for a level. */
const HEAD = 400;

/**
 * The level stated in a line of an application; `info` without one. Standard error is not significant: many programs
 * write all their log there.
 */
export function levelOf(text: string): LogLevel {
  const head = text.length > HEAD ? text.slice(0, HEAD) : text;
  if (head.startsWith('{')) return levelOfJson(head);
  const prefix = PREFIX.exec(head)?.[1] ?? PAIR.exec(head)?.[1];
  return LEVELS_BY_WORD[prefix?.toLowerCase() ?? ''] ?? 'info';
}

/** Matched by pattern: a line may be truncated, and parsing thousands of lines a second is expensive. */
function levelOfJson(head: string): LogLevel {
  const [, word, number] = MEMBER.exec(head) ?? [];
  if (number !== undefined) return levelOfNumber(Number(number));
  return LEVELS_BY_WORD[word?.toLowerCase() ?? ''] ?? 'info';
}

/** Levels of bunyan and pino: 20 debug, 30 info, 40 warn, 50 error. */
function levelOfNumber(number: number): LogLevel {
  if (number >= 50) return 'error';
  if (number >= 40) return 'warning';
  return number > 0 && number < 30 ? 'debug' : 'info';
}
