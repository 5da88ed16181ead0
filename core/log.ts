// The log: JSON lines on standard output. Fields that may hold a secret are blanked wherever they stand.
import { destination, pino, type DestinationStream, type Logger } from 'pino';

export type { Logger };

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

const SECRET_FIELDS = ['authorization', 'cookie', '["set-cookie"]', 'token', 'password', 'secret', 'key', 'value'];
const DEPTHS = ['', '*.', '*.*.'];

/**
 * @param stream where the lines go; default: standard output, written in the background and flushed at exit
 */
export function createLog(level: LogLevel, stream: DestinationStream = destination({ fd: 1, sync: false })): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: DEPTHS.flatMap((depth) => SECRET_FIELDS.map((field) => path(depth, field))), censor: '[hidden]' },
    },
    stream,
  );
}

function path(depth: string, field: string): string {
  return field.startsWith('[') ? depth.slice(0, -1) + field : depth + field;
}
