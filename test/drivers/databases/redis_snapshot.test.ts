// Snapshots of a running Redis over the network, as backups of servers in pods are taken.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { withServerAt } from '../../../drivers/database/redis/connection';
import { servedCertificate, writeSnapshot } from '../../../drivers/database/redis/snapshot_stream';
import { makeAuthority, type Authority } from '../../support/databases/authority';
import { freePort } from '../../support/processes/free_port';
import { needs } from '../../support/runner/programs';
import { waitFor } from '../../support/wait_for';

const server = { id: 'db_1', admin_password: 'secret' };
const serverName = 'db-1.platform-prj-1.svc';
const ctx = (ms = 20_000): ReturnType<typeof driverContext> => driverContext(ms);

needs('redis-server').describe('a snapshot over the network', () => {
  let home: string;
  let authority: Authority;
  const running: ChildProcess[] = [];
  beforeAll(async () => {
    home = mkdtempSync(path.join(tmpdir(), 'snapshot-'));
    authority = await makeAuthority();
  });
  afterAll(() => {
    for (const child of running) child.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  });

  /** A server with the account of the platform and TLS, as in a pod. */
  async function start(name: string, more: string[] = []): Promise<Parameters<typeof writeSnapshot>[0]> {
    const directory = path.join(home, name);
    mkdirSync(directory, { recursive: true });
    const { cert, key } = await authority.issue([serverName]);
    writeFileSync(path.join(directory, 'crt'), cert);
    writeFileSync(path.join(directory, 'key'), key);
    const port = await freePort();
    const lines = [
      ...[`dir ${directory}`, 'port 0', `tls-port ${port}`, 'bind 127.0.0.1', 'save ""', 'daemonize no'],
      ...[`tls-cert-file ${directory}/crt`, `tls-key-file ${directory}/key`, 'tls-auth-clients no'],
      ...['repl-diskless-sync yes', 'repl-diskless-sync-delay 0', 'user default off'],
      ...[`user platform_db_1 on >${server.admin_password} ~* &* +@all`, ...more],
    ];
    writeFileSync(path.join(directory, 'redis.conf'), lines.join('\n'));
    running.push(spawn('redis-server', [path.join(directory, 'redis.conf')], { stdio: 'ignore' }));
    const at = { host: '127.0.0.1', port, authority: authority.pem, serverName };
    await waitFor('the server', async () => (await servedCertificate(at, ctx()).catch(() => null)) !== null);
    return at;
  }
  const send = (at: Parameters<typeof writeSnapshot>[0], ...words: string[]): Promise<unknown> =>
    withServerAt({ at, conf: home }, server, (command) => command(...words), ctx());

  test.each([
    ['with a mark at its end', []],
    ['of a server that says its size first', ['repl-diskless-sync no']],
  ])('another server starts with it: %s', async (_, more) => {
    const name = `source-${more.length}`;
    const at = await start(name, more);
    await send(at, 'DEBUG', 'POPULATE', '20000').catch(() => undefined);
    for (let index = 0; index < 40; index += 1) await send(at, 'SET', `key:${index}`, `${index}`.repeat(40_000));
    const size = await send(at, 'DBSIZE');
    const file = path.join(home, `${name}.rdb`);
    await writeSnapshot(at, server, file, ctx());
    const bytes = readFileSync(file);
    expect(bytes.subarray(0, 5).toString()).toBe('REDIS');
    expect(execFileSync('redis-check-rdb', [file]).toString()).toContain('RDB looks OK');
    mkdirSync(path.join(home, `copy-${name}`));
    writeFileSync(path.join(home, `copy-${name}`, 'dump.rdb'), bytes);
    const copy = await start(`copy-${name}`);
    expect(await send(copy, 'DBSIZE')).toBe(size);
    expect(await send(copy, 'GET', 'key:39')).toBe('39'.repeat(40_000));
    // It is no replica any more.
    await waitFor('no replica', async () =>
      String(await send(at, 'INFO', 'replication')).includes('connected_slaves:0'),
    );
    // An existing file is not overwritten.
    await expect(writeSnapshot(at, server, file, ctx())).rejects.toMatchObject({ reason: 'transient' });
  });

  test('a server that ends within it leaves no backup, and a wrong password is an error', async () => {
    const at = await start('ends');
    await send(at, 'SET', 'x', 'y'.repeat(30_000_000));
    const child = running.at(-1)!;
    const file = path.join(home, 'ends.rdb');
    const taken = writeSnapshot(at, server, file, ctx());
    child.kill('SIGKILL');
    await expect(taken).rejects.toMatchObject({ reason: 'transient' });
    const other = await start('password');
    const wrong = { ...server, admin_password: 'guess' };
    await expect(writeSnapshot(other, wrong, path.join(home, 'wrong.rdb'), ctx())).rejects.toMatchObject({
      message: 'The server could not send its data.',
    });
  });

  test('whoever has the address of a pod now gets no password', async () => {
    const stranger = await makeAuthority();
    const { cert, key } = await stranger.issue([serverName]);
    const neighbour = await authority.issue(['db-2.platform-prj-2.svc']);
    for (const identity of [{ cert, key }, neighbour]) {
      let heard = '';
      const listening = createServer(identity, (socket) => socket.on('data', (chunk) => (heard += chunk.toString())));
      listening.on('tlsClientError', () => undefined);
      await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
      const at = {
        host: '127.0.0.1',
        port: (listening.address() as AddressInfo).port,
        authority: authority.pem,
        serverName,
      };
      const work = [
        () => writeSnapshot(at, server, path.join(home, 'stranger.rdb'), ctx()),
        () => servedCertificate(at, ctx()),
        () => send(at, 'PING'),
      ];
      for (const one of work) await expect(one()).rejects.toMatchObject({ reason: 'transient' });
      rmSync(path.join(home, 'stranger.rdb'), { force: true });
      expect(heard).toBe('');
      listening.close();
    }
  });
});
