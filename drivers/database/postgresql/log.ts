// The server log: files of lines, rotated daily or at 8 MB. Since version 15 a line is a JSON object; in a pod it is
// text.
import { open, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { LogChunk } from '../../runtime';
import { failureTextOf } from '../../../core/log/failure_text';
import type { ServerDirectory } from '../../hosted_server/server_directory';
import { placeOfData } from '../../hosted_server/server_disk';
import { logDirectory, roles } from './cluster';

const chunkBytes = 256 * 1024;
const keptFiles = 6;
const recentMs = 10 * 60_000;

/** One log line as shown to users. */
interface LogLine {
  at: string | null;
  source: 'server' | 'slow_query';
  severity: string | null;
  message: string;
  username: string | null;
  database: string | null;
  process: number | null;
}

/** Lines after a position; a position in a removed file continues with the oldest existing line. */
export async function readLog(serverDirectory: ServerDirectory, position: string | null): Promise<LogChunk> {
  const files = await filesOf(serverDirectory);
  const [given = '', at = '0'] = (position ?? '').split(':');
  const known = files.includes(given);
  // A removed file was older than all existing ones.
  const file = known ? given : files.find((one) => one > given);
  if (file === undefined) return { lines: [], position: position ?? '', more: false };
  const { lines, next, isAll } = await readPart(serverDirectory, file, known ? Number(at) : 0);
  const later = files.find((one) => one > file);
  if (isAll && later !== undefined) return { lines, position: `${later}:0`, more: true };
  return { lines, position: `${file}:${next}`, more: !isAll };
}

/** What the log has said in the last minutes about a failure of the whole server; null where it says nothing. */
export async function lastFailure(serverDirectory: ServerDirectory): Promise<string | null> {
  let last: string | null = null;
  for (let position: string | null = null, more = true; more;) {
    const chunk = await readLog(serverDirectory, position);
    for (const { text } of chunk.lines) {
      const { at, severity, message, username } = parseLogLine(text);
      const isRecent = at !== null && Date.now() - Date.parse(at) < recentMs;
      // Failures of a client are not of the server.
      if (isRecent && username === null && /^(FATAL|PANIC)$/.test(severity ?? '')) last = message;
    }
    ({ position, more } = chunk);
  }
  return last === null ? null : failureTextOf(last);
}

/** Removes the oldest files. */
export async function pruneLog(serverDirectory: ServerDirectory): Promise<void> {
  const files = await filesOf(serverDirectory);
  for (const file of files.slice(0, Math.max(0, files.length - keptFiles)))
    await rm(path.join(logDirectory(serverDirectory), file), { force: true });
}

/** Lines of a log that is text: those of the platform are left out, with the lines that belong to them. */
export function visibleLines(lines: LogChunk['lines']): LogChunk['lines'] {
  let isShown = true;
  return lines.filter(({ text }) => {
    if (!text.startsWith('\t')) isShown = !isOurs(text);
    return isShown;
  });
}

/**
 * Parses one line. Once statements of the platform are excluded, the only sensitive content is in the users' own
 * queries.
 */
export function parseLogLine(text: string): LogLine {
  const row = objectOf(text) ?? partsOf(text);
  const message = row === null ? text : [row.message, row.detail, row.hint].filter(Boolean).join(' ');
  const source = /^duration: \d+(\.\d+)? ms/.test(message) || / LOG: +duration: /.test(text) ? 'slow_query' : 'server';
  const word = (value: unknown) => (typeof value === 'string' ? value : null);
  return {
    at: timeOf(word(row?.timestamp)),
    source,
    severity: word(row?.error_severity),
    message,
    username: word(row?.user),
    database: word(row?.dbname),
    process: typeof row?.pid === 'number' ? row.pid : null,
  };
}

// 2026-01-31 12:00:00.123 UTC
function timeOf(text: string | null): string | null {
  const at = Date.parse((text ?? '').replace(' UTC', 'Z').replace(' ', 'T'));
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

/** Of a line that begins as `log_line_prefix` says. */
function partsOf(text: string): Record<string, unknown> | null {
  const found = /^(\S+ \S+ UTC) \[(\d+)\] (\S*)@(\S*) \w{5} ([A-Z]+[0-9]?): +(.*)$/.exec(text);
  if (found === null) return null;
  const [, timestamp, pid, user, dbname, error_severity, message] = found;
  return { timestamp, pid: Number(pid), user: user || null, dbname: dbname || null, error_severity, message };
}

async function readPart(
  serverDirectory: ServerDirectory,
  name: string,
  from: number,
): Promise<{ lines: LogChunk['lines']; next: number; isAll: boolean }> {
  const handle = await open(path.join(logDirectory(serverDirectory), name), 'r');
  const place = placeOfData(serverDirectory.path);
  try {
    const { size } = await handle.stat();
    const start = Math.min(from, size);
    const buffer = Buffer.alloc(Math.min(chunkBytes, size - start));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
    const bytes = buffer.subarray(0, bytesRead);
    // A line longer than the buffer is returned in parts.
    const end = bytes.lastIndexOf(10) + 1 || (bytesRead === chunkBytes ? bytesRead : 0);
    const lines = bytes
      .subarray(0, end)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '' && !isOurs(line));
    return {
      lines: lines.map((text) => ({
        stream: 'stderr' as const,
        text: text.replaceAll('\0', '').replaceAll(place, '').replaceAll(serverDirectory.path, ''),
      })),
      next: start + end,
      isAll: start + bytesRead >= size,
    };
  } finally {
    await handle.close();
  }
}

// These lines are visible to users: internal statements and host paths of the platform are excluded.
function isOurs(line: string): boolean {
  return line.includes(`"user":"${roles.admin}"`) || line.includes(` ${roles.admin}@`);
}

// Sorted by name, which is by time. With jsonlog, the collector also writes unstructured output, e.g. of its helpers,
// to another file.
async function filesOf(serverDirectory: ServerDirectory): Promise<string[]> {
  const files = (await readdir(logDirectory(serverDirectory)).catch(() => [])).sort();
  const structured = files.filter((file) => file.endsWith('.json'));
  return structured.length > 0 ? structured : files;
}
