// The engine's own programs for dumps: each runs as the user of the server, and logs in with an account that has only
// the rights it needs (docs/decisions/0208). The password is in a file of that user while the program runs.
import { randomBytes } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { endSentence } from '../../../core/log/failure_excerpt';
import { cleanFailureText } from '../../../core/log/failure_text';
import {
  ownerOf,
  socketOf,
  writeFileFor,
  type Owner,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { clientConfiguration, hashOf, toolAccountOf, type ToolPurpose } from './config';
import { serverAccessOf, type Login, type Query, type ServerAccess } from './connection';

/** Values of 64 MB take twice as much in a statement. The largest that the protocol allows. */
export const PACKET_BYTES_MAX = 2 ** 30;
const STDERR_CHARACTERS_MAX = 20_000;

/** How programs of the engine on this host reach a server. */
export interface ToolAccess extends ServerAccess {
  socket: string;
  /** For files with passwords. */
  conf: string;
  /** The user that they run as, where the platform is root. */
  owner: Owner;
}

/** To a server of this host. */
export async function toolAccessOf(serverDirectory: ServerDirectory): Promise<ToolAccess> {
  const owner = await ownerOf(serverDirectory);
  return { ...serverAccessOf(serverDirectory), socket: socketOf(serverDirectory), conf: serverDirectory.conf, owner };
}

/** An account for one run of a program: its name in SQL, its login, and the file with it. */
export interface ToolAccount extends Login {
  name: string;
  file: string;
}

/** Makes the account, without rights. A later call gives it another password. */
export async function openToolAccount(
  access: ToolAccess,
  id: string,
  purpose: ToolPurpose,
  query: Query,
): Promise<ToolAccount> {
  const user = toolAccountOf(id, purpose);
  const name = `'${user}'@'${access.accountHost}'`;
  const password = randomBytes(24).toString('base64url');
  await query(`CREATE USER IF NOT EXISTS ${name} ACCOUNT LOCK`);
  await query(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${name}`);
  await query(`ALTER USER ${name} IDENTIFIED BY PASSWORD '${hashOf(password)}' ACCOUNT UNLOCK`);
  const file = path.join(access.conf, `${purpose}.cnf`);
  await writeFileFor(file, clientConfiguration(access.socket, { user, password }), access.owner);
  return { name, user, password, file };
}

/** Removes the account and its file. A leftover account is made anew by the next run, or removed by `ensure`. */
export async function closeToolAccount(
  { name, file }: ToolAccount,
  asAdmin: (work: (query: Query) => Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  await rm(file, { force: true });
  await asAdmin((query) => query(`DROP USER IF EXISTS ${name}`)).catch(() => undefined);
}

/** Starts the program. Its password is in no argument list. */
export function spawnTool(
  { owner: { uid, gid } }: ToolAccess,
  tool: string,
  account: ToolAccount,
  options: string[],
  ctx: DriverContext,
): ChildProcess {
  const user = process.getuid?.() === 0 ? { uid, gid } : {};
  const child = spawn(tool, [`--defaults-file=${account.file}`, ...options], {
    ...user,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    signal: ctx.signal,
    killSignal: 'SIGKILL',
  });
  child.stdin!.on('error', () => undefined);
  return child;
}

/** Waits for its end. `failure`: what failed, as a sentence. @throws DriverError transient with the reason */
export function requireToolSuccess(child: ChildProcess, failure: string): Promise<void> {
  let stderr = '';
  child
    .stderr!.setEncoding('utf8')
    .on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_CHARACTERS_MAX)));
  return new Promise((resolve, reject) => {
    child.once('error', (error) => {
      const isOver = error.name === 'AbortError';
      const message = isOver ? 'The step did not finish in time.' : 'A program of the engine could not be run.';
      reject(Object.assign(new DriverError('transient', message), { cause: error }));
    });
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const reason =
        reasonOf(stderr) ?? (signal === null ? `The program ended with code ${code}.` : `${signal} ended the program.`);
      reject(new DriverError('transient', `${failure} ${reason}`));
    });
  });
}

/**
 * The line with the error. Programs print the statement before it, which may hold rows: neither they nor values within
 * the line, nor paths of the host are shown.
 */
function reasonOf(stderr: string): string | null {
  const lines = stderr.split('\n').filter((line) => /^(ERROR \d|mariadb-dump: |mysqldump: )/.test(line));
  const line = lines.at(-1);
  if (line === undefined) return null;
  const text = line
    .replace(/^(mariadb-dump|mysqldump): /, '')
    .replace(/ near '.*$/, '')
    .replace(/(Duplicate entry|value:?) '.*'(?= for )/, "$1 '…'");
  return endSentence(cleanFailureText(text));
}
