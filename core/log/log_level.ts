// The level that a line of an application states, in the formats of well-known loggers. Read from left to right, one
// token after the other, so that a hostile line costs no more than another one.
import { SEQUENCES } from './failure_excerpt';
import type { LogLevel } from './log_line';

/** Words that are a level wherever one can be; and those that are one in capitals, in brackets or before a colon. */
const WORDS: Record<string, LogLevel> = levels({
  debug: 'trace debug verbose',
  info: 'info notice information',
  warning: 'warn warning',
  error: 'error fatal critical panic',
});
const MARKS: Record<string, LogLevel> = levels({
  debug: 'trc trce dbg dbug debu vrb vrbs',
  info: 'inf',
  warning: 'wrn',
  error: 'err erro ftl fata fail crit severe alert emerg emergency dpanic',
});

/** Of java.util.logging, where capitals tell them from other words. */
const CAPITALS: Record<string, LogLevel> = levels({
  debug: 'FINE FINER FINEST CONFIG',
  info: '',
  warning: '',
  error: '',
});

const PAIR = /\b(?:level|lvl|severity)=["']?([a-z]+)/i;
const MEMBER = new RegExp(
  '"(?:level|severity|levelname|level_name|loglevel|lvl|log\\.level|severity_?text|@l)"\\s*:\\s*' +
    '(?:"([A-Za-z]+)(?:[+-]\\d+)?"|(\\d+))',
  'i',
);
/** Length of what is searched for a level; JSON may have its message first. */
const HEAD = 400;
const JSON_HEAD = 2_000;
const TOKENS_MAX = 16;

/** `E0131 15:04:05.678901   1 main.go:12]` of klog, glog and Abseil. */
const GLOG = /^([IWEFD])(?:\d{4}|\d{8}) \d\d:\d\d:\d\d/;
/** `E, [2026-01-31T15:04:05.678901 #1] ERROR -- : text` of Ruby. */
const RUBY = /^([DIWEFA]), \[\d/;
/** `1:M 31 Jan 2026 15:04:05.678 # text` of Redis. */
const REDIS = /^\d+:[A-Z] \d\d \w{3} \d{4} [\d:.]+ ([.\-*#]) /;
const LETTERS: Record<string, LogLevel> = {
  ...{ D: 'debug', I: 'info', W: 'warning', E: 'error', F: 'error', A: 'info' },
  ...{ '.': 'debug', '-': 'debug', '*': 'info', '#': 'warning' },
};
/** `<11>1 2026-…` of syslog (RFC 5424). */
const SYSLOG = /^<(\d{1,3})>/;

const SEPARATORS = /[\s|,;:.-]*/y;
const TIME_WORD =
  /(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|[AP]M|UTC|GMT|[ACEMPW]E?[SD]?T)\b/y;
const NUMBER = /[+#]?\d[\w:.,+/-]*/y;
const BRACKETS = /\[([^\][]{0,80})\]|\(([^()]{0,80})\)|<([^<>]{0,80})>/y;
const ASSIGNED = /[\w.-]{1,60}=(?:"[^"]*"|\S*)/y;
/** Programs that begin their lines with their name. */
const PROGRAM = /(?:npm|PHP(?: Parse| Recoverable)?)(?= )/y;
/** As in `… - logger - ERROR - text`, `… user@database ERROR: text` and `[…] channel.ERROR: text`. */
const NAME = /(?![A-Z]{3,9}\s)[\w.$/@-]{1,80}(?=\s+-\s)|[\w.-]{1,60}@[\w.-]{1,60}(?= )|[\w-]{1,60}\.(?=[A-Z]{4,9}: )/y;
const WORD = /[A-Za-z]+/y;

/**
 * The level stated in a line of an application; `info` without one. Standard error is not significant: many programs
 * write all their log there.
 */
export function levelOf(text: string): LogLevel {
  const cut = text.length > JSON_HEAD ? text.slice(0, JSON_HEAD) : text;
  const plain = cut.includes('\u001b') ? cut.replaceAll(SEQUENCES, '') : cut;
  if (plain.startsWith('{')) return levelOfJson(plain);
  const head = plain.slice(0, HEAD);
  const [, letter] = GLOG.exec(head) ?? RUBY.exec(head) ?? REDIS.exec(head) ?? [];
  if (letter !== undefined) return LETTERS[letter] ?? 'info';
  const priority = SYSLOG.exec(head)?.[1];
  if (priority !== undefined) return levelOfNumber(Number(priority) % 8);
  return statedLevel(head) ?? markOf(PAIR.exec(head)?.[1] ?? '') ?? 'info';
}

/** Behind times, numbers, names in brackets and `key=value`; the first word that is none of these decides. */
function statedLevel(head: string): LogLevel | null {
  let at = 0;
  let hasTime = false;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(head);
    if (found) at = pattern.lastIndex;
    return found;
  };
  for (let tokens = 0; tokens < TOKENS_MAX; tokens += 1) {
    take(SEPARATORS);
    const brackets = take(BRACKETS);
    if (brackets) {
      const inside = brackets[1] ?? brackets[2] ?? brackets[3] ?? '';
      const level = levelInBrackets(inside);
      if (level) return level;
      hasTime ||= /\d:\d\d/.test(inside);
      continue;
    }
    const number = take(NUMBER);
    hasTime ||= number !== null && /\d:\d\d/.test(number[0]);
    if (number || take(TIME_WORD)) continue;
    const pair = take(ASSIGNED)?.[0];
    if (pair !== undefined && PAIR.test(pair)) return markOf(PAIR.exec(pair)?.[1] ?? '');
    if (pair !== undefined) continue;
    hasTime = take(PROGRAM) !== null || hasTime;
    if (hasTime && take(NAME)) continue;
    take(SEPARATORS);
    const word = take(WORD)?.[0];
    return word === undefined ? null : levelOfWord(word, head.slice(at, at + 2), tokens === 0 || hasTime);
  }
  return null;
}

/** `[error]`, `[15:04:05 ERR]`, `[core:error]`, `[ERROR/worker]`: small letters alone, or behind a colon. */
function levelInBrackets(text: string): LogLevel | null {
  const last = text.slice(text.lastIndexOf(':') + 1).trim();
  const whole = markOf(last);
  if (whole) return whole;
  const capitals = text.match(/[A-Z]{3,}/g) ?? [];
  for (const word of capitals) if (markOf(word)) return markOf(word);
  return null;
}

/** @param behind the characters after it. @param isEarly nothing but times is before it */
function levelOfWord(word: string, behind: string, isEarly: boolean): LogLevel | null {
  const isCapital = word === word.toUpperCase();
  if (isCapital || behind.startsWith(':')) return CAPITALS[word] ?? markOf(word);
  if (!isEarly && !/^[A-Z]/.test(word)) return null;
  return /^(?:[\s|/\])>-]|$)/.test(behind) ? (WORDS[word.toLowerCase()] ?? null) : null;
}

function markOf(word: string): LogLevel | null {
  const key = word.toLowerCase();
  return WORDS[key] ?? MARKS[key] ?? null;
}

/** Matched by pattern: a line may be truncated, and parsing thousands of lines a second is expensive. */
function levelOfJson(head: string): LogLevel {
  const [, word, number] = MEMBER.exec(head) ?? [];
  if (number !== undefined) return levelOfNumber(Number(number));
  return markOf(word ?? '') ?? 'info';
}

/** Below 8 of syslog (3 error, 7 debug), below 100 of bunyan and pino (20 debug, 50 error), else of Monolog (400). */
function levelOfNumber(number: number): LogLevel {
  if (number < 8) return number <= 3 ? 'error' : number === 4 ? 'warning' : number === 7 ? 'debug' : 'info';
  const rank = number < 100 ? number : number >= 400 ? 50 : number >= 300 ? 40 : number >= 200 ? 30 : 20;
  if (rank >= 50) return 'error';
  if (rank >= 40) return 'warning';
  return rank < 30 ? 'debug' : 'info';
}

function levels(words: Record<LogLevel, string>): Record<string, LogLevel> {
  const entries = Object.entries(words) as [LogLevel, string][];
  return Object.fromEntries(entries.flatMap(([level, all]) => all.split(' ').map((word) => [word, level] as const)));
}
