// The log: JSON lines on standard output. Fields that may hold a secret are blanked wherever they stand.
import {
  destination,
  pino,
  stdSerializers,
  symbols,
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type Logger,
} from 'pino';

export type { Logger };

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

const SECRET_FIELDS = new Set(['authorization', 'cookie', 'set-cookie', 'token', 'password', 'secret', 'key', 'value']);
const HIDDEN = '[hidden]';
/** PIPE_BUF of Linux: what is written to a pipe in one piece. */
const WHOLE_BYTES = 4096;
/** Deeper parts are left out; it also ends circles. */
const DEPTH_MAX = 6;

/**
 * @param stream where the lines go; default: standard output, written in the background and flushed at exit
 */
export function createLog(level: LogLevel, stream: DestinationStream = destination({ fd: 1, sync: false })): Logger {
  const log = pino(
    {
      level,
      base: null,
      timestamp: isoTime,
      serializers: { err: (error: Error) => withoutSecrets(stdSerializers.err(error)) },
      // Not pino's `redact`: with paths at three depths it takes 29 us a line, this takes 1 us, and every request
      // writes one.
      formatters: { level: (label) => ({ level: label }), log: withoutSecrets },
    },
    stream,
  );
  return hidingInChildren(log);
}

let lastMs = 0;
let lastTime = '';

/** As pino's own, made once for all lines of a millisecond. */
function isoTime(): string {
  const now = Date.now();
  if (now !== lastMs) [lastMs, lastTime] = [now, `,"time":"${new Date(now).toISOString()}"`];
  return lastTime;
}

/**
 * The same log for lines whose fields are known to hold no secret: they are not looked through. Every request writes
 * one.
 */
export function plainLog(log: Logger): Logger {
  return log.child({}, { formatters: { log: (fields) => fields } });
}

/** Writes text for people behind the lines of the log, which are written in the background. */
export function writeText(log: Logger, text: string): void {
  (log as unknown as { [symbols.streamSym]: DestinationStream })[symbols.streamSym].write(text);
}

/** Standard output for several processes: lines of up to 4096 bytes never run into those of others. */
export function sharedOutput(): DestinationStream {
  return destination({ fd: 1, sync: false, maxWrite: WHOLE_BYTES });
}

/** pino hands the fields of a child logger to no formatter. Children inherit this `child`. */
function hidingInChildren(log: Logger): Logger {
  const child: (bindings: Bindings, options?: ChildLoggerOptions) => Logger = log.child;
  const hiding = function (this: Logger, bindings: Bindings, options?: ChildLoggerOptions): Logger {
    return child.call(this, withoutSecrets(bindings), options);
  };
  return Object.assign(log, { child: hiding });
}

function withoutSecrets(fields: object, depth = 0): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields))
    copy[name] = SECRET_FIELDS.has(name.toLowerCase()) ? HIDDEN : inner(value, depth + 1);
  return copy;
}

function inner(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Error || 'toJSON' in value) return value;
  if (depth > DEPTH_MAX) return '[deep]';
  return Array.isArray(value) ? value.map((entry) => inner(entry, depth + 1)) : withoutSecrets(value, depth);
}
