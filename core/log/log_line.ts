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
