/** @tier heavy @quarter 4 @covers drivers/backup_store server/agents/backup_store.ts */
// Backups in a bucket: restored on another machine, killed in the middle, refused, swept. The bucket is one of the
// embedded S3 endpoint; a machine is a runtime with a directory of its own.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@redis/client';
import { probeBackupStore } from '../../../drivers/backup_store/probe';
import { s3BackupStore } from '../../../drivers/backup_store/s3';
import { sweepBackupStore } from '../../../drivers/backup_store/sweep';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import { makeBackup, removeBackupDirectory, withBackupFile } from '../../../drivers/hosted_server/backups';
import type { EngineContext } from '../../../drivers/hosted_server/server_directory';
import {
  openStallingProxy,
  openStoreTrial,
  type StoreOptions,
  type StoreTrial,
} from '../../support/databases/backup_store';
import { claimPorts } from '../../support/processes/claimed_ports';
import { hasEngine } from '../../support/databases/database_hall';
import { ctx, openServerTrial, settle, specOf } from '../../support/databases/database_server';
import {
  notesOf,
  openEngineTrial,
  postgresqlSpec,
  rows,
  serverTime,
  untilDone,
  type EngineTrial,
} from '../../support/engines';
import { redisServers } from '../../support/databases/hosted_servers';
import { kill, spawnProgram } from '../../support/processes/processes';
import { restoreMariadbElsewhere } from '../../support/databases/stored_mariadb';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(300_000);

const version = '15';
const hasPostgresql = existsSync(`/usr/lib/postgresql/${version}/bin/pg_basebackup`) || process.env.CI !== undefined;
const hasRedis = spawnSync('redis-server', ['--version']).status === 0 || process.env.CI !== undefined;
const hasMariadb = hasEngine('mariadb') || process.env.CI !== undefined;
const root = mkdtempSync(path.join(tmpdir(), 'backup-store-'));
let bucket: StoreTrial;

beforeAll(async () => {
  bucket = await openStoreTrial();
}, 180_000);
afterAll(async () => {
  await bucket.close();
  rmSync(root, { recursive: true, force: true });
});

(hasPostgresql ? describe : describe.skip)(`PostgreSQL ${version}`, () => {
  const machines: EngineTrial[] = [];
  const openMachine = async (): Promise<EngineTrial> => {
    const machine = await openEngineTrial({ store: s3BackupStore(bucket.options) });
    machines.push(machine);
    return machine;
  };
  afterAll(async () => {
    for (const machine of machines) await machine.close();
  });

  const backupFiles = ['base/backup_manifest', 'base/base.tar.gz', 'base/pg_wal.tar.gz', 'dump', 'manifest.json'];

  test('a lost machine: any point up to the last file of the log comes back on another one', async () => {
    const first = await openMachine();
    const spec = postgresqlSpec(version, first.firstPort, { archive: true, replicas: [] });
    await untilDone((context) => first.driver.ensure(spec, context));
    await rows(spec, "create table notes (note text primary key); insert into notes values ('a')");
    const made = await untilDone((context) => first.driver.backup(spec, 'bkp_one', context));
    expect((await bucket.keys()).filter((key) => key.startsWith(`${spec.id}/backups/`)).sort()).toEqual(
      backupFiles.map((file) => `${spec.id}/backups/bkp_one/${file}`).sort(),
    );
    const here = readdirSync(path.join(first.directory, 'backups', spec.id, 'bkp_one'), { recursive: true });
    expect(here.sort()).toEqual(['base', 'manifest.json', 'stored.json']);
    await rows(spec, "insert into notes values ('b')");
    const until = await serverTime(spec);
    await rows(spec, "insert into notes values ('c')");
    // The machine is lost when all that it has written has left it; what comes later is lost with it.
    const archive = path.join(first.directory, spec.id, 'archive');
    await rows(spec, 'select 1');
    await untilDone((context) => first.driver.ensure({ ...spec, running: false }, context));
    expect(await first.driver.storeArchives!(ctx())).toBeGreaterThan(0);
    const [system] = readdirSync(archive);
    expect(readdirSync(path.join(archive, system!)).filter((file) => file.endsWith('.gz'))).toEqual([]);
    await first.close();
    machines.splice(0);
    rmSync(first.directory, { recursive: true, force: true });

    const second = await openMachine();
    const same = { ...spec, port: second.firstPort };
    const restore = (of: DatabaseServer, id: string, more: { backup_id?: string; until?: string }) =>
      untilDone((context) =>
        second.driver.restore(of, { id, server_id: spec.id, backup_id: null, until: null, ...more }, context),
      );
    // Nothing is there, and nothing is begun in its place.
    expect(await second.driver.hasData(spec.id)).toBe(false);
    const window = await second.driver.window(spec.id, ctx());
    expect(window!.earliest < until && until < window!.latest).toBe(true);
    await restore(same, 'rst_until', { until });
    expect(await notesOf(same)).toEqual(['a', 'b']);
    // The log goes on there, and the mistake of that restore can be undone.
    await rows(same, "insert into notes values ('d')");
    expect((await second.driver.window(spec.id, ctx()))!.earliest).toBe(window!.earliest);
    await restore(same, 'rst_all', { until: window!.latest });
    expect(await notesOf(same)).toEqual(['a', 'b', 'c']);
    const copy = { ...postgresqlSpec(version, second.firstPort + 1), id: 'db_copy_of_stored', tenant: 12 };
    await restore(copy, 'rst_copy', { backup_id: 'bkp_one' });
    expect(await notesOf(copy)).toEqual(['a']);
    expect(await untilDone((context) => second.driver.backup(same, 'bkp_one', context))).toEqual(made);

    const { stream, file_name } = await second.driver.openBackup(spec.id, 'bkp_one');
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    writeFileSync(path.join(root, file_name), Buffer.concat(chunks));
    const listed = spawnSync('pg_restore', ['--list', path.join(root, file_name)], { encoding: 'utf8' });
    expect(listed.stdout).toContain('TABLE DATA public notes');

    await second.driver.remove(copy.id, ctx());
    await second.driver.remove(same.id, ctx());
    await second.driver.removeBackup(spec.id, 'bkp_one', ctx());
    expect(await bucket.keys()).toEqual([]);
    expect(second.trial.errors).toEqual([]);
  });

  test('a store that refuses the key: the backup waits here, and says why without a secret', async () => {
    const machine = await openEngineTrial({
      store: s3BackupStore({ ...bucket.options, secretAccessKey: 'not-the-secret-of-this-key' }),
    });
    machines.push(machine);
    const spec = postgresqlSpec(version, machine.firstPort, { archive: true, replicas: [] });
    await untilDone((context) => machine.driver.ensure(spec, context));
    const refused = await untilDone((context) => machine.driver.backup(spec, 'bkp_two', context)).catch(
      (error: unknown) => error as { reason: string; message: string },
    );
    expect(refused).toMatchObject({
      reason: 'unauthorized',
      message: 'The backup store refuses a request of the platform (SignatureDoesNotMatch).',
    });
    expect(existsSync(path.join(machine.directory, 'backups', spec.id, 'bkp_two', 'base', 'base.tar.gz'))).toBe(true);
    expect(JSON.stringify(refused)).not.toContain('not-the-secret');
    expect(await bucket.keys()).toEqual([]);
  });
});

(hasMariadb ? test : test.skip)('MariaDB: a dump of one machine is restored on another one that has nothing', () =>
  restoreMariadbElsewhere(bucket.store, () => bucket.keys()),
);

(hasRedis ? test : test.skip)('Redis: a snapshot of one machine is restored on another one', async () => {
  const { redis: found } = await hostFacts();
  const trials = [await openServerTrial(), await openServerTrial()];
  const app = async (of: DatabaseServer, ...command: string[]) => {
    const client = createClient({
      ...{ username: 'app', password: of.users[0]!.password, disableClientInfo: true, RESP: 2 },
      socket: {
        ...{ host: '127.0.0.1', port: of.port, tls: true, ca: of.tls.certificate, servername: 'localhost' },
        reconnectStrategy: false,
      },
    });
    client.on('error', () => undefined);
    await client.connect();
    return client.sendCommand(command).finally(() => client.destroy());
  };
  const [one, two] = trials.map(({ runtime, root: at }) =>
    redisServers({
      ...{ runtime, directory: `${at}/databases`, found, engine: 'redis', store: s3BackupStore(bucket.options) },
    }),
  );
  const ports = await claimPorts();
  const spec = specOf('redis', found[0]!.series, ports.first, { tenant: 12 });
  await settle(one!, spec);
  await app(spec, 'SET', 'word', 'kept');
  await untilDone((context) => one!.backup(spec, 'bkp_redis', context));
  await one!.remove(spec.id, ctx());
  rmSync(`${trials[0]!.root}/databases`, { recursive: true, force: true });
  const same = { ...spec, port: ports.first + 1 };
  expect(await two!.hasData(spec.id)).toBe(false);
  await two!.restore(same, { id: 'rst', server_id: spec.id, backup_id: 'bkp_redis', until: null }, ctx());
  await settle(two!, same);
  expect(await app(same, 'GET', 'word')).toBe('kept');
  expect(existsSync(path.join(trials[1]!.root, 'databases', spec.id, 'fetched'))).toBe(false);
  const { stream } = await two!.openBackup(spec.id, 'bkp_redis');
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  expect(Buffer.concat(pieces).subarray(0, 5).toString()).toBe('REDIS');
  await two!.removeBackup(spec.id, 'bkp_redis', ctx());
  expect(await bucket.keys()).toEqual([]);
  await two!.remove(spec.id, ctx());
  for (const trial of trials) await trial.close();
  await ports.release();
});

const program = `
  const { copyFileSync } = require('node:fs');
  const { makeBackup } = require('./drivers/hosted_server/backups');
  const { s3BackupStore } = require('./drivers/backup_store/s3');
  const { driverContext } = require('./core/driver');
  const [directory, source, options] = process.argv.slice(1);
  const engine = { name: 'trial', directory, gigabyteBytes: 2 ** 30, store: s3BackupStore(JSON.parse(options)) };
  const fill = async (file) => (copyFileSync(source, file), { version: '1' });
  makeBackup(engine, 'db_killed', 'bkp_killed', 'data.bin', fill, driverContext(60000)).catch(() => undefined);
`;

test('killed at every request of an upload: no half is a backup, and the next call makes it whole', async () => {
  const machine = (name: string): EngineContext => ({
    ...{ directory: path.join(root, name), name: 'trial', gigabyteBytes: 2 ** 30, store: bucket.store },
    runtime: null as never,
  });
  const content = randomBytes(40 * 2 ** 20);
  const source = path.join(root, 'content');
  writeFileSync(source, content);
  const proxy = await openStallingProxy(bucket.options.url);
  const id = { serverId: 'db_killed', backupId: 'bkp_killed' };
  const target = { ...{ id: 'db_other', data: '', conf: '', run: '' }, path: path.join(root, 'target') };
  const read = (name: string) =>
    withBackupFile(machine(name), target, id, (file) => Promise.resolve(readFileSync(file)), ctx());
  const options = JSON.stringify({ ...bucket.options, url: proxy.url });
  let kills = 0;
  for (let isWhole = false; !isWhole; kills += 1) {
    proxy.answer(kills);
    const child = spawnProgram(program, [path.join(root, 'killed'), source, options]);
    const end = new Promise<string>((resolve) => child.once('exit', () => resolve('ended')));
    const first = await Promise.race([proxy.stalled().then(() => 'stalled'), end]);
    await kill(child);
    const isBackup = (await bucket.keys()).includes('db_killed/backups/bkp_killed/manifest.json');
    const found = await read(`other-${kills}`).catch((error: { reason: string }) => error.reason);
    if (isBackup) expect((found as Buffer).equals(content)).toBe(true);
    else expect(found).toBe('conflict');
    isWhole = first === 'ended';
  }
  proxy.close();
  // The removal of a manifest, the list of uploads, the begin, three parts, the completion, the manifest.
  expect(kills).toBeGreaterThanOrEqual(8);
  const fill = () => Promise.reject(new Error('it is there'));
  const made = await makeBackup(machine('killed'), id.serverId, id.backupId, 'data.bin', fill, ctx());
  expect(made.size_bytes).toBe(content.length);
  expect(readdirSync(path.join(root, 'killed/backups/db_killed/bkp_killed')).sort()).toEqual([
    'manifest.json',
    'stored.json',
  ]);
  expect(await bucket.keys()).toEqual(
    ['data.bin', 'manifest.json'].map((name) => `db_killed/backups/bkp_killed/${name}`),
  );
  expect(await bucket.unfinished()).toBe(0);
  await removeBackupDirectory(machine('killed'), id.serverId, id.backupId, ctx());
  expect(await bucket.keys()).toEqual([]);
});

test('the check of doctor: a bucket that works, one that does not exist, a key that is refused', async () => {
  await probeBackupStore(bucket.store, ctx());
  expect(await bucket.keys()).toEqual([]);
  const probe = (more: Partial<StoreOptions>) => probeBackupStore(s3BackupStore({ ...bucket.options, ...more }), ctx());
  await expect(probe({ bucket: 'no-such-bucket' })).rejects.toThrow('The bucket of the backup store does not exist.');
  const accessKeyId = bucket.options.accessKeyId.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
  await expect(probe({ accessKeyId })).rejects.toThrow('(InvalidAccessKeyId)');
  await expect(probe({ url: 'http://127.0.0.1:9' })).rejects.toThrow('The backup store does not respond.');
});

test('the sweep removes what was given up, and nothing else', async () => {
  const { store } = bucket;
  for (const name of ['db_left/backups/bkp_half/dump', 'db_left/archive/7/000000010000000000000001.gz'])
    await store.write(name, 'x', ctx());
  await store.write('db_kept/backups/bkp_whole/manifest.json', '{}', ctx());
  await store.write('db_kept/archive/7/000000010000000000000001.gz', 'x', ctx());
  await store.write('something else/archive/of/others', 'x', ctx());
  expect(await sweepBackupStore(store, 60_000, ctx())).toBe(0);
  expect(await sweepBackupStore(store, -60_000, ctx())).toBe(2);
  expect(await bucket.keys()).toEqual([
    'db_kept/archive/7/000000010000000000000001.gz',
    'db_kept/backups/bkp_whole/manifest.json',
    'something else/archive/of/others',
  ]);
  for (const key of await bucket.keys()) await store.remove(key, ctx());
});
