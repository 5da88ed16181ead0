// The programs of the engines without the platform: the same work on the same data, on the same disk.
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../../demo/stage';
import { hostFacts } from '../../../drivers/host';
import { secondsOf, type EngineName, type Login } from './databases_server';

/** Both return seconds. `backup` comes after `restore`. */
export interface Bare {
  /** Starts a separate server with the files of a platform backup, until it responds. */
  restore(backupId: string): Promise<number>;
  backup(): Promise<number>;
  close(): void;
}

/** Servers refuse to run as root: uid and gid 65534. */
const OTHER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const POLL_MS = 20;
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

export async function bareOf(engine: EngineName, stage: Stage, id: string, login: Login): Promise<Bare> {
  const scratch = mkdtempSync(path.join(stage.directory, 'bare-'));
  give(scratch);
  const files = (backupId: string, name: string): string =>
    path.join(stage.directory, 'databases/backups', id, backupId, name);
  const close = (): void => rmSync(scratch, { recursive: true, force: true });
  return {
    ...(await { postgresql, redis, mariadb }[engine]({
      scratch,
      files,
      home: path.join(stage.directory, 'databases', id),
      login,
    })),
    close,
  };
}

interface ServerPlace {
  /** User that the servers run as. */
  scratch: string;
  files: (backupId: string, name: string) => string;
  home: string;
  login: Login;
}

async function postgresql({ scratch, files, home, login }: ServerPlace): Promise<Omit<Bare, 'close'>> {
  const found = (await hostFacts()).postgresql.find(({ tools }) => tools.includes('pg_basebackup'));
  if (!found) throw new Error('this machine has no pg_basebackup');
  const bin = path.dirname(found.path);
  const port = String(login.endpoints[0]?.port);
  const server = ['-h', path.join(home, 'socket'), '-p', port, '-U', 'platform_admin', '-w'];
  return {
    backup: () =>
      secondsOf(async () => {
        const into = fresh(scratch, 'backup');
        const baseOptions = `-D ${path.join(into, 'base')} -Ft -Z 1 -X stream -c fast`.split(' ');
        await done(path.join(bin, 'pg_basebackup'), [...server, ...baseOptions]);
        const dumpOptions = `-Fc -Z 1 -f ${path.join(into, 'dump')} -d app`.split(' ');
        await done(path.join(bin, 'pg_dump'), [...server, ...dumpOptions]);
      }),
    restore: async (backupId) => {
      const data = fresh(scratch, 'restored');
      let child: ChildProcess | undefined;
      const seconds = await secondsOf(async () => {
        await done('/bin/sh', [
          '-c',
          `tar -xzf "${files(backupId, 'base/base.tar.gz')}" -C "${data}" && tar -xzf ` +
            `"${files(backupId, 'base/pg_wal.tar.gz')}" -C "${data}/pg_wal" && chown -R ` +
            `${OTHER.uid ?? ''}:${OTHER.gid ?? ''} "${data}"`,
        ]);
        child = serve(path.join(bin, 'postgres'), ['-D', data, '-k', scratch, '-c', 'listen_addresses='], OTHER);
        await until(() => done(path.join(bin, 'pg_isready'), ['-q', '-h', scratch]));
      });
      return ended(child, seconds);
    },
  };
}

async function redis({ scratch, files }: ServerPlace): Promise<Omit<Bare, 'close'>> {
  const program = (await hostFacts()).redis[0]?.path as string;
  const socket = path.join(scratch, 'redis');
  const cli = (...words: string[]): Promise<void> => done('redis-cli', ['-s', socket, '-e', ...words]);
  let child: ChildProcess | undefined;
  return {
    // The data of the last restore: like a replica, the program requests all of them from a server.
    backup: async () => ended(child, await secondsOf(() => cli('--rdb', path.join(scratch, 'out.rdb')))),
    async restore(backupId) {
      const data = fresh(scratch, 'restored');
      return secondsOf(async () => {
        await done('cp', [files(backupId, 'dump.rdb'), path.join(data, 'dump.rdb')]);
        child = serve(program, [
          '--dir',
          data,
          '--port',
          '0',
          '--unixsocket',
          socket,
          '--save',
          '',
          '--appendonly',
          'no',
          '--repl-diskless-sync-delay',
          '0',
        ]);
        await until(() => cli('PING'));
      });
    },
  };
}

async function mariadb({ scratch, files, login }: ServerPlace): Promise<Omit<Bare, 'close'>> {
  const {
    username,
    password,
    endpoints: [place],
  } = login;
  const dump =
    `mariadb-dump --no-defaults --ssl --host=${place?.host} --port=${place?.port} --user=${username} ` +
    '--single-transaction --quick --routines --events --triggers --hex-blob --no-tablespaces app';
  const socket = path.join(scratch, 'mariadb');
  return {
    backup: () =>
      secondsOf(() =>
        done('bash', ['-o', 'pipefail', '-c', `${dump} | gzip -1 > "${path.join(scratch, 'dump.sql.gz')}"`], {
          env: { PATH, MYSQL_PWD: password },
        }),
      ),
    restore: async (backupId) => {
      const data = fresh(scratch, 'restored');
      let child: ChildProcess | undefined;
      const seconds = await secondsOf(async () => {
        const own = ['--no-defaults', `--datadir=${data}`];
        await done('mariadb-install-db', [...own, '--auth-root-authentication-method=normal', '--skip-test-db'], OTHER);
        const options = [`--socket=${socket}`, '--skip-networking', '--innodb-buffer-pool-size=512M'];
        child = serve('mariadbd', [...own, ...options], OTHER);
        const client = `mariadb --no-defaults --socket="${socket}" --user=root`;
        await until(() => done('/bin/sh', ['-c', `${client} -e 'create database app'`], OTHER));
        const load = `gunzip -c "${files(backupId, 'dump.sql.gz')}" | ${client} --binary-mode app`;
        await done('bash', ['-o', 'pipefail', '-c', load]);
      });
      return ended(child, seconds);
    },
  };
}

function fresh(scratch: string, name: string): string {
  const directory = path.join(scratch, name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  give(directory);
  return directory;
}

function give(directory: string): void {
  if (OTHER.uid !== undefined) chownSync(directory, OTHER.uid, OTHER.gid);
}

/** Runs a program to completion. @throws Error with its output */
function done(program: string, args: string[], options: SpawnOptions = {}): Promise<void> {
  const child = spawn(program, args, { env: { PATH }, ...options, stdio: ['ignore', 'ignore', 'pipe'] });
  let complaint = '';
  child.stderr?.on('data', (text: Buffer) => (complaint += text.toString()));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}: ${complaint}`)),
    );
  });
}

function serve(program: string, args: string[], options: SpawnOptions = {}): ChildProcess {
  const child = spawn(program, args, { env: { PATH }, ...options, stdio: 'ignore' });
  process.once('exit', () => child.kill('SIGKILL'));
  return child;
}

async function until(attempt: () => Promise<void>): Promise<void> {
  for (let left = 3_000; ; left -= 1, await sleep(POLL_MS)) {
    const failure = await attempt().then(
      () => null,
      (error: unknown) => error,
    );
    if (failure === null) return;
    if (left === 0) throw failure;
  }
}

/** The server is no longer needed. */
async function ended(child: ChildProcess | undefined, seconds: number): Promise<number> {
  const end = new Promise((resolve) => child?.once('exit', resolve));
  child?.kill('SIGKILL');
  await end;
  return seconds;
}
