// Words of log lines that all parts agree on.

export type LogSource = 'app' | 'router' | 'system';
export type DatabaseLogSource = 'server' | 'slow_query' | 'pooler';
export type LogStep = 'build' | 'release' | 'deploy';
export type LogLevel = 'debug' | 'info' | 'warning' | 'error';

/** UTF-8 bytes of a message; what is longer is cut. */
const LOG_MESSAGE_BYTES_MAX = 16 * 1024;

/** A message as it can be stored: without NUL and halves of surrogate pairs, cut to its greatest length. */
export function cleanMessage(text: string): string {
  const whole = text.includes('\0') ? text.replaceAll('\0', '') : text;
  const clean = whole.isWellFormed() ? whole : whole.toWellFormed();
  // No character has more than three bytes per unit of the string.
  if (clean.length * 3 <= LOG_MESSAGE_BYTES_MAX || Buffer.byteLength(clean) <= LOG_MESSAGE_BYTES_MAX) return clean;
  return cut(Buffer.from(clean));
}

/** Never within a character: bytes that continue one begin with the bits 10. */
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

/** `ERROR: x`, `[warn] x`, `2026-01-31 09:30:00 ERROR x`, `level=error`: the word comes early or not at all. */
const LEVEL_WORDS = 'trace|debug|verbose|info|notice|warn|warning|error|fatal|critical|panic';
const PREFIX = new RegExp(`^(?:[\\d:.,TZ+\\- /[\\]]{8,40}\\s*)?[[(<]?(${LEVEL_WORDS})[\\])>]?(?=[:\\s|\\]-]|$)`, 'i');
const PAIR = /\blevel=["']?([a-z]+)/i;
const MEMBER = /"(?:level|severity|levelname|log\.level)"\s*:\s*(?:"([A-Za-z]+)"|(\d+))/;
/** How far into a line a level is looked for. */
const HEAD = 400;

/**
 * The level that a line of an application claims for itself; `info` where it claims none. That a line went to standard
 * error says nothing: many programs write all their log there.
 */
export function levelOf(text: string): LogLevel {
  const head = text.length > HEAD ? text.slice(0, HEAD) : text;
  if (head.startsWith('{')) return levelOfJson(head);
  const prefix = PREFIX.exec(head)?.[1] ?? PAIR.exec(head)?.[1];
  return LEVELS_BY_WORD[prefix?.toLowerCase() ?? ''] ?? 'info';
}

/** Read by pattern: a line may be cut, and parsing thousands a second is work that nobody sees. */
function levelOfJson(head: string): LogLevel {
  const [, word, number] = MEMBER.exec(head) ?? [];
  if (number !== undefined) return levelOfNumber(Number(number));
  return LEVELS_BY_WORD[word?.toLowerCase() ?? ''] ?? 'info';
}

/** As bunyan and pino count: 20 debug, 30 info, 40 warn, 50 error. */
function levelOfNumber(number: number): LogLevel {
  if (number >= 50) return 'error';
  if (number >= 40) return 'warning';
  return number > 0 && number < 30 ? 'debug' : 'info';
}
