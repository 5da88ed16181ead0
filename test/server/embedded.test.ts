// The embedded server under everything that can happen to the processes that hold it.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '../../core/startup_error';
import { openEmbedded } from '../../server/platform/embedded';
import { copyPackage, linkLibraries, packagedNative } from '../../server/platform/embedded/binaries';
import { openEmbeddedTrial, query } from '../support/embedded';
import { kill, processesWith, signalAll, unprivileged } from '../support/processes/processes';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? it : it.skip;
const native = packagedNative();
const withPackage = native ? it : it.skip;

const home = openEmbeddedTrial();
const { open, hold, server, inside, stopped, keepers } = home;

describe('one process', () => {
  it('starts in an empty directory, on the loopback interface, with a password that nobody else sees', async () => {
    const { url } = await open();
    const { password, hostname } = new URL(url);
    const [row] = await query(
      url,
      `select current_setting('listen_addresses') listen, current_setting('unix_socket_directories') sockets,
        current_setting('server_encoding') encoding, current_setting('timezone') zone`,
    );
    expect(row).toEqual({ listen: '127.0.0.1', sockets: home.data(), encoding: 'UTF8', zone: 'UTC' });
    expect(hostname).toBe('127.0.0.1');
    expect(password).toHaveLength(48);
    expect(fs.statSync(inside('password')).mode & 0o777).toBe(0o600);
    expect(fs.readFileSync(inside('postgres.log'), 'utf8')).not.toContain(password);
    expect(processesWith(home.dataDir).length).toBeGreaterThan(1);
    expect(processesWith(password)).toEqual([]);
    expect(leftovers()).toEqual([]);
    await expect(query(url.replace(password, 'wrong'), 'select 1')).rejects.toThrow('password authentication failed');
  });

  it('keeps rows, stops with close, and starts again', async () => {
    const first = await open();
    await query(first.url, `create table notes as select 'kept' as text`);
    await first.close();
    expect(server()).toBeUndefined();
    const { url } = await open();
    expect(await query(url, 'select text from notes')).toEqual([{ text: 'kept' }]);
  });

  it('keeps values out of its log when a statement fails', async () => {
    const { url } = await open();
    await query(url, 'create table keys (value text primary key)');
    await query(url, `insert into keys values ('confidential')`);
    await expect(query(url, `insert into keys values ('confidential')`)).rejects.toThrow('duplicate key');
    expect(fs.readFileSync(inside('postgres.log'), 'utf8')).not.toContain('confidential');
  });

  asRoot('runs the server as another user than root', async () => {
    await open();
    expect(fs.statSync(`/proc/${server()!.pid}`).uid).not.toBe(0);
    expect(fs.statSync(home.data()).uid).toBe(fs.statSync(`/proc/${server()!.pid}`).uid);
  });
});

describe('several processes', () => {
  it('share one server, which ends when kill -9 has taken the last of them', async () => {
    const first = hold();
    const url = await first.url;
    const second = hold();
    expect(await second.url).toBe(url);
    await kill(first.process);
    await sleep(500);
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await kill(second.process);
    await stopped();
    await expect(query(url, 'select 1')).rejects.toThrow('ENOENT');
  });

  it('race on an empty directory: one server', async () => {
    const urls = await Promise.all([hold().url, hold().url, hold().url]);
    expect(new Set(urls).size).toBe(1);
    expect(leftovers()).toEqual([]);
    await query(urls[0]!, `create table notes as select 'kept' as text`);
    await home.letGo();
    const { url } = await open();
    expect(await query(url, 'select text from notes')).toEqual([{ text: 'kept' }]);
  });

  it('close in one leaves the server to the other', async () => {
    const [first, second] = [await open(), await open()];
    await first.close();
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});

describe('kill -9', () => {
  it('of a process that starts the server, at any moment, loses no row and leaves no server', async () => {
    const first = await open();
    await query(first.url, 'create table notes (n int)');
    await first.close();
    for (const [n, delay] of [90, 130, 160, 190, 220, 260].entries()) {
      const { process: starter, url } = hold();
      url.catch(() => {});
      await sleep(delay);
      await kill(starter);
      const next = await open();
      await query(next.url, 'insert into notes values ($1)', [n]);
      await next.close();
    }
    const { url } = await open();
    expect(await query(url, 'select count(*)::int as count from notes')).toEqual([{ count: 6 }]);
  });

  it('during the first start leaves a directory that starts', async () => {
    for (const delay of [150, 300, 450]) {
      const { process: starter, url } = hold();
      url.catch(() => {});
      await sleep(delay);
      await kill(starter);
    }
    fs.mkdirSync(inside('init-old/data'), { recursive: true });
    fs.utimesSync(inside('init-old'), 0, 0);
    const { url } = await open();
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(leftovers()).not.toContain('init-old');
  });

  it('of the server itself: a stale postmaster.pid is no obstacle', async () => {
    const first = await open();
    await query(first.url, `create table notes as select 'kept' as text`);
    process.kill(server()!.pid, 'SIGKILL');
    const { url } = await open();
    expect(await query(url, 'select text from notes')).toEqual([{ text: 'kept' }]);
  });

  it('of the supervisor: the next process replaces the server, which then ends with it', async () => {
    const first = await open();
    const orphan = server()!.pid;
    expect(keepers()).toHaveLength(2);
    signalAll(keepers());
    const { url, close } = await open();
    expect(server()!.pid).not.toBe(orphan);
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await Promise.all([first.close(), close()]);
    expect(server()).toBeUndefined();
  });

  it('of everything at once', async () => {
    const { process: holder, url } = hold();
    await query(await url, `create table notes as select 'kept' as text`);
    signalAll(processesWith(home.dataDir).map(({ pid }) => pid));
    await once(holder, 'exit');
    const again = await open();
    expect(await query(again.url, 'select text from notes')).toEqual([{ text: 'kept' }]);
  });
});

describe('the npm package', () => {
  withPackage("runs without the links of its install script, from a place of the engine's user", async () => {
    const hidden = path.join(home.dataDir, 'hidden');
    fs.mkdirSync(hidden, { mode: 0o700 });
    fs.copyFileSync(path.join(native!, '../package.json'), path.join(hidden, 'package.json'));
    fs.cpSync(native!, path.join(hidden, 'native'), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => !fs.lstatSync(file).isSymbolicLink(),
    });
    const bin = path.join(copyPackage(path.join(hidden, 'native'), path.join(home.dataDir, 'programs')), 'bin');
    fs.rmSync(hidden, { recursive: true });
    const { url } = await open({ binaries: bin });
    expect(await query(url, 'select upper($1) as text', ['é'])).toEqual([{ text: 'É' }]);
  });

  withPackage('gets its links where it lies', () => {
    const copy = path.join(home.dataDir, 'native');
    fs.cpSync(native!, copy, { recursive: true, filter: (file) => !fs.lstatSync(file).isSymbolicLink() });
    expect(spawnSync(path.join(copy, 'bin/postgres'), ['--version']).status).not.toBe(0);
    expect(linkLibraries(copy)).toBe(true);
    expect(spawnSync(path.join(copy, 'bin/postgres'), ['--version']).status).toBe(0);
    expect(linkLibraries(copy)).toBe(true);
  });
});

describe('refuses with one line', () => {
  it('the data of another major version', async () => {
    fs.mkdirSync(path.join(home.dataDir, 'postgres/data-9'), { recursive: true });
    await refused(/holds the data of PostgreSQL 9, but this is PostgreSQL \d+/);
    expect(fs.readdirSync(path.join(home.dataDir, 'postgres')).filter((name) => name.startsWith('data-'))).toEqual([
      'data-9',
    ]);
  });

  it('a directory that cannot be written', async () => {
    fs.chmodSync(home.dataDir, 0o555);
    const child = hold(unprivileged());
    const ended = once(child.process, 'exit');
    await expect(child.url).rejects.toThrow(/^StartupError: can't write in [^\n]*EACCES[^\n]*$/);
    expect((await ended)[0]).toBe(1);
  });

  it('a file in place of the directory', async () => {
    fs.writeFileSync(path.join(home.dataDir, 'file'), '');
    await expect(openEmbedded({ dataDir: path.join(home.dataDir, 'file') })).rejects.toThrow(/^can't write in .*file/);
  });

  asRoot("a directory that the engine's user cannot reach", async () => {
    const above = fs.mkdtempSync(path.join(home.dataDir, 'closed-'));
    const message = new RegExp(`^PostgreSQL runs as the user nobody, who cannot reach .*chmod o\\+x '${above}'`);
    await expect(openEmbedded({ dataDir: path.join(above, 'data') })).rejects.toThrow(message);
  });

  asRoot('a user that does not exist, and root', async () => {
    await refused(/^PLATFORM_POSTGRES_USER: this machine has no user no-such-user/, { user: 'no-such-user' });
    await refused(/^PLATFORM_POSTGRES_USER must not be root/, { user: 'root' });
  });

  it('a PG_BIN without programs', () =>
    refused(/^PG_BIN: no PostgreSQL runs from \/nowhere/, { binaries: '/nowhere' }));

  it('a password file of other data, which the message does not quote', async () => {
    await open();
    fs.writeFileSync(inside('password'), 'exchanged');
    await refused(/^the database does not accept the password in [^\n]*password: restore/);
    await expect(open()).rejects.not.toThrow('exchanged');
  });

  it('a server that does not start, with its reason', () =>
    refused(/^PostgreSQL does not start: unrecognized configuration parameter "no_such_setting"/, {
      flags: ['-c', 'no_such_setting=1'],
    }));
});

async function refused(
  message: RegExp,
  options: { user?: string; binaries?: string; flags?: string[] } = {},
): Promise<void> {
  const refusal = await openEmbedded({ dataDir: home.dataDir, ...options }).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StartupError);
  expect((refusal as Error).message).toMatch(message);
  expect((refusal as Error).message).not.toContain('\n');
}

function leftovers(): string[] {
  return fs.readdirSync(path.join(home.dataDir, 'postgres')).filter((name) => /^(init|copy)-/.test(name));
}
