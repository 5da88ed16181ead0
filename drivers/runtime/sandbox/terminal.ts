// A terminal for a unit: script(1) of util-linux makes it outside of the sandbox, since an image may have no such
// program, and copies between it and the files of the unit. Its slave is the controlling terminal of all that runs in
// the sandbox: the sandbox makes no session of its own, which would take it away. The terminal belongs to this unit
// alone, so characters that a program pushes into it (TIOCSTI) reach nobody else.
import { statSync } from 'node:fs';
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import type { User } from '../host_probe';
import { systemPath } from './sandbox';

/** The file in the run directory that names the slave. */
export const TERMINAL_FILE = 'terminal';
/** Of a client that does not say its own. */
const SIZE = { rows: 24, columns: 80 };

/** Puts a terminal around a command. `user`: who may open the slave once more, as /dev/stdin does. */
export function inTerminal(runDirectory: string, user: User | null, command: readonly string[]): string[] {
  const script = terminalProgram();
  if (script === null)
    throw new DriverError('unsupported', 'This host has no terminals for runs: the program script is missing.');
  const file = quoteWord(path.join(runDirectory, TERMINAL_FILE));
  const line = [
    `stty sane rows ${SIZE.rows} cols ${SIZE.columns}`,
    ...(user === null ? [] : [`chown ${user.uid} "$(tty)"`]),
    // Last: a client may tell its size from then on.
    `tty >${file}.new && mv ${file}.new ${file}`,
    `exec ${command.map(quoteWord).join(' ')}`,
  ].join('; ');
  // Without its TMPDIR it would not be known as a process of the unit on a host without control groups.
  return ['/usr/bin/env', `TMPDIR=${path.join(runDirectory, 'tmp')}`, script, '-qefc', line, '/dev/null'];
}

/**
 * Lines of a shell that run a command line as the foreground job of the terminal, and end as it does. Ctrl-C reaches
 * the job alone: the shells and the sandbox around it would end by it, and take a program along that goes on. A job
 * that Ctrl-Z stops goes on at once: nobody could call it back.
 */
export function inForeground(commandLine: string): string[] {
  const job = [
    'set -m',
    // A shell ends by Ctrl-C where its job has ended by it.
    'trap : INT QUIT',
    `/bin/sh -c ${quoteWord(commandLine)} 9>&-`,
    'code=$?',
    // 128 and SIGTSTP, unless a program has ended with it.
    'while [ $code = 148 ] && jobs %% >/dev/null 2>&1; do fg >/dev/null; code=$?; done',
    // At its own end this shell fails to give the terminal back to a group outside of the sandbox.
    'exec 2>/dev/null',
    'echo $code >&9',
  ];
  return ['exec 8>&1', `code=$(/bin/sh -c ${quoteWord(job.join('\n'))} 9>&1 >&8 8>&-)`, 'exit ${code:-129}'];
}

/** script(1), which runs as the platform's user; null where the host has none. */
function terminalProgram(): string | null {
  const places = systemPath.split(':').map((place) => path.join(place, 'script'));
  return places.find((file) => ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o111) !== 0) ?? null;
}

/** A word of a shell. */
export function quoteWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
