// One server for all processes that need it, stopped when the last of them is gone, even by kill -9.
//
// Each process holds the writing end of a named pipe. A small shell, the supervisor, runs the server and reads from the
// pipe: the kernel closes the ends of dead processes, so end-of-file means that no process needs the server any more.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import * as path from 'node:path';
import type { Cluster } from './cluster';

// stdin is the pipe. SIGINT is PostgreSQL's fast shutdown; it is sent again because a server that has just been started
// ignores it until its handlers are set. The server must not inherit the pipe: a reader means that a supervisor lives.
const SUPERVISOR = `
exec 3<&0 </dev/null
"$@" 3<&- & P=$!
( while read -r _ <&3; do :; done; exec 3<&-; while kill -INT $P 2>/dev/null; do sleep 1; done ) & W=$!
exec 3<&-
wait $P; S=$?
kill $W 2>/dev/null
exit $S`;

// Statements and details of errors may hold values of customers, so they stay out of the log; starts, stops and crashes
// are in it.
const SETTINGS = [
  'log_min_messages=log',
  'log_min_error_statement=panic',
  'log_error_verbosity=terse',
  'log_checkpoints=off',
  'timezone=UTC',
];

export interface Start {
  /** The supervisor has ended: this server did not start, or it has stopped. */
  ended(): boolean;
  release(): void;
}

export interface ServerAddress {
  port: number;
  /** Folder of its Unix socket, empty where it has none. */
  sockets: string;
}

/** Starts a server under a supervisor, held from its first moment, so that kill -9 of the starter cannot orphan it. */
export function startEmbeddedServer(cluster: Cluster, { port, sockets }: ServerAddress, flags: string[]): Start {
  const { reader, writer } = openPipe(cluster.fifo);
  const log = fs.openSync(cluster.log, 'a', 0o600);
  const settings = SETTINGS.flatMap((setting) => ['-c', setting]);
  const server = [
    path.join(cluster.bin, 'postgres'),
    '-D',
    cluster.data,
    '-p',
    String(port),
    '-h',
    '127.0.0.1',
    '-k',
    sockets,
    ...settings,
    ...flags,
  ];
  // A new session: Ctrl-C only reaches the platform, which then shuts down in order.
  const supervisor = spawn('/bin/sh', ['-c', SUPERVISOR, 'sh', ...server], {
    ...cluster.engine.spawn,
    detached: true,
    stdio: [reader, log, log],
  });
  let ended = false;
  supervisor.on('exit', () => (ended = true)).on('error', () => (ended = true));
  supervisor.unref();
  for (const handle of [reader, log]) fs.closeSync(handle);
  return { ended: () => ended, release: () => fs.closeSync(writer) };
}

/** sun_path of unix(7) holds 108 bytes with the zero at the end; on macOS 104. */
const SOCKET_PATH_BYTES_MAX = 103;

/**
 * Where the server can have its Unix socket: the folder of its data, which is its alone. Empty where the path would be
 * too long, where PostgreSQL would take it for a list, and on file systems without sockets (some that hosts share with
 * containers).
 */
export async function findSocketDirectory({ data }: Cluster, port: number): Promise<string> {
  if (Buffer.byteLength(path.join(data, `.s.PGSQL.${port}`)) > SOCKET_PATH_BYTES_MAX || /[,"]/.test(data)) return '';
  const probe = createServer();
  try {
    // Not the name itself: a server that was killed has left it there, and another process may be starting one right
    // now.
    await once(probe.listen(path.join(data, `.s.${randomBytes(4).toString('hex')}`)), 'listening');
    return data;
  } catch {
    return '';
  } finally {
    probe.close();
  }
}

/**
 * Takes away what servers that were killed have left. The one that runs holds the lock of the folder, so no other can
 * be alive.
 */
export function removeStaleSockets(data: string, port: number): void {
  for (const name of fs.readdirSync(data)) {
    const [, other] = /^\.s\.PGSQL\.(\d+)(?:\.lock)?$/.exec(name) ?? [];
    if (other !== undefined && Number(other) !== port) fs.rmSync(path.join(data, name), { force: true });
  }
}

/** The writing end of the pipe, or nothing when no supervisor reads it. */
export function acquireLock(fifo: string): number | undefined {
  try {
    return fs.openSync(fifo, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
  } catch (error) {
    if (['ENXIO', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** Whether a supervisor still watches: false as soon as it has begun to stop the server. */
export function isSupervised(fifo: string): boolean {
  const probe = acquireLock(fifo);
  if (probe === undefined) return false;
  fs.closeSync(probe);
  return true;
}

/** Both ends. Neither alone opens without the other, hence the first handle, which is both. */
function openPipe(fifo: string): { reader: number; writer: number } {
  const both = fs.openSync(fifo, fs.constants.O_RDWR);
  const reader = fs.openSync(fifo, fs.constants.O_RDONLY);
  const writer = fs.openSync(fifo, fs.constants.O_WRONLY);
  fs.closeSync(both);
  return { reader, writer };
}

export interface Postmaster extends ServerAddress {
  pid: number;
  state: string;
}

/**
 * The running server of this data directory according to postmaster.pid, no matter which process started it. A file
 * left by a dead server does not count.
 */
export function readPostmaster(data: string): Postmaster | undefined {
  const lines = readLines(path.join(data, 'postmaster.pid'));
  const pid = Number(lines[0]);
  if (!pid || !isServerOf(pid, data)) return undefined;
  return { pid, port: Number(lines[3]), sockets: (lines[4] ?? '').trim(), state: (lines[7] ?? 'starting').trim() };
}

/** Where the last server of these data listened, when it was killed: one that stops removes the file. */
export function readLastPort(data: string): number | undefined {
  return Number(readLines(path.join(data, 'postmaster.pid'))[3]) || undefined;
}

function readLines(file: string): string[] {
  try {
    return fs.readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** A server works in its data folder. The number alone may belong to another process by now, or to a zombie. */
function isServerOf(pid: number, data: string): boolean {
  try {
    return fs.readlinkSync(`/proc/${pid}/cwd`) === data;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && fs.existsSync('/proc/self/cwd')) return false;
    return spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout.includes(data); // macOS
  }
}
