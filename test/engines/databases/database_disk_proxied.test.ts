/** @tier heavy @quarter 3 @covers drivers/hosted_server drivers/volume */
// Redis and MariaDB at the end of their disk: it is hard, and they come back from it.
import { spawnSync } from 'node:child_process';
import { statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { createClient } from '@redis/client';
import type { RowDataPacket } from 'mysql2/promise';
import type { DatabaseServer } from '../../../drivers/database';
import { diskBytes } from '../../../drivers/database/disk_size';
import { hostFacts } from '../../../drivers/host';
import { claimPorts } from '../../support/processes/claimed_ports';
import { ctx, openServerTrial, settle, specOf, removeServers } from '../../support/databases/database_server';
import { mariadbServers, redisServers, type Servers } from '../../support/databases/hosted_servers';
import { answersFor, connectAs } from '../../support/databases/mariadb_trial';
import { processesWith } from '../../support/processes/processes';
import type { Trial } from '../../support/builds/runtime';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const gigabyteBytes = 2 ** 24;
const skipped = 'skipped: images cannot be mounted here';

let trial: Trial;
let directory: string;
let ports: Awaited<ReturnType<typeof claimPorts>>;
beforeAll(async () => {
  trial = await openServerTrial();
  directory = `${trial.root}/databases`;
  ports = await claimPorts();
});
afterAll(async () => {
  expect(processesWith(directory)).toEqual([]);
  await trial.close();
  await ports.release();
  expect(trial.errors).toEqual([]);
});

const sizeOf = ({ id }: DatabaseServer) => statSync(path.join(directory, id, 'disk.ext4'));
const engineOf = (name: string) => ({ name, directory, runtime: trial.runtime, gigabyteBytes });

async function removeAll(driver: Servers): Promise<void> {
  await removeServers(driver);
  expect(spawnSync('findmnt', ['-n', '-o', 'TARGET'], { encoding: 'utf8' }).stdout).not.toContain(directory);
}

test('Redis', async () => {
  if (!trial.disks) return console.warn(skipped);
  const found = (await hostFacts()).redis;
  const options = { runtime: trial.runtime, directory, found, gigabyteBytes, disks: true };
  const driver = redisServers({ ...options, engine: 'redis' });
  const size = { memory_mb: 2048, cpus: 1, max_connections: 20 };
  const spec = specOf('redis', found[0]!.series, ports.first, { size });
  await settle(driver, spec);
  const bytes = diskBytes(engineOf('redis'), spec);
  expect(sizeOf(spec).size).toBe(bytes);
  const written = await fillRedis(spec);
  expect(sizeOf(spec).blocks * 512).toBeLessThanOrEqual(bytes + (1 << 20));
  await settle(driver, spec);
  expect(sizeOf(spec).size).toBeGreaterThan(bytes);
  expect(await driver.observe(spec, ctx())).toMatchObject({ state: 'running' });
  const client = await connectRedis(spec);
  for (const key of written) expect(await client.sendCommand(['STRLEN', key])).toBe(FILLER.length);
  await client.sendCommand(['DEL', ...written]);
  client.destroy();
  await driver.ensure({ ...spec, running: false }, ctx());
  await settle(driver, spec);
  await removeAll(driver);
});

test('MariaDB', async () => {
  if (!trial.disks) return console.warn(skipped);
  const found = (await hostFacts()).mariadb;
  const driver = mariadbServers({ runtime: trial.runtime, directory, found, gigabyteBytes, disks: true });
  const spec = specOf('mariadb', found[0]!.series, ports.first + 1, { storage_gb: 16, database_name: 'app' });
  await settle(driver, spec);
  const app = (...statements: string[]) => answersFor(spec, 'app', spec.users[0]!.password, statements);
  const bytes = diskBytes(engineOf('mariadb'), spec);
  const tables = ['CREATE TABLE kept (id INT)', 'INSERT INTO kept VALUES (42)', 'CREATE TABLE flood (filler LONGTEXT)'];
  expect(await app(...tables, `INSERT INTO flood VALUES (REPEAT('x', 8000000))`)).toEqual(['ok', 'ok', 'ok', 'ok']);
  let answer: unknown = 'ok';
  for (let i = 0; answer === 'ok' && i < 100; i += 1)
    [answer] = await app('INSERT INTO flood SELECT * FROM flood LIMIT 16');
  expect(answer).toMatch(/FULL|DISK|NOSPC|ERR|ECONN|PROTOCOL/);
  expect(sizeOf(spec).blocks * 512).toBeLessThanOrEqual(bytes + (1 << 20));
  await settle(driver, spec);
  expect(await app('SELECT id FROM kept')).toEqual([[{ id: 42 }]]);
  expect(await driver.observe(spec, ctx())).toMatchObject({ state: 'running', full: true });
  expect(await app('DROP TABLE flood')).toEqual(['ok']);
  await settle(driver, spec);
  expect(await app('INSERT INTO kept VALUES (43)')).toEqual(['ok']);
  await removeAll(driver);
});

test('temporary tables of MariaDB are on its disk', async () => {
  if (!trial.disks) return console.warn(skipped);
  const found = (await hostFacts()).mariadb;
  const driver = mariadbServers({ runtime: trial.runtime, directory, found, gigabyteBytes, disks: true });
  const spec = specOf('mariadb', found[0]!.series, ports.first + 2, { storage_gb: 16, database_name: 'app' });
  await settle(driver, spec);
  const connection = await connectAs(spec, 'app', spec.users[0]!.password);
  const before = usedOf(path.join(directory, spec.id, 'disk'));
  await connection.query('CREATE TEMPORARY TABLE flood (filler LONGTEXT) ENGINE=Aria');
  await connection.query(`INSERT INTO flood VALUES (REPEAT('x', 8000000))`);
  for (let i = 0; i < 3; i += 1) await connection.query('INSERT INTO flood SELECT * FROM flood');
  expect(usedOf(path.join(directory, spec.id, 'disk')) - before).toBeGreaterThan(60_000_000);
  const [shown] = await connection.query<RowDataPacket[]>('SHOW DATABASES');
  expect(shown.map(({ Database }) => Database)).toEqual(['app', 'information_schema']);
  connection.destroy();
  await removeAll(driver);
});

function usedOf(place: string): number {
  const { blocks, bfree, bsize } = statfsSync(place);
  return (blocks - bfree) * bsize;
}

const FILLER = 'x'.repeat(1 << 20);

async function connectRedis({ users: [user], port, tls }: DatabaseServer) {
  const client = createClient({
    ...{ username: user!.username, password: user!.password, disableClientInfo: true, RESP: 2 },
    socket: { host: '127.0.0.1', port, tls: true, ca: tls.certificate, servername: 'localhost' },
  });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Writes until it is refused. @returns what it acknowledged */
async function fillRedis(spec: DatabaseServer): Promise<string[]> {
  const client = await connectRedis(spec);
  const written: string[] = [];
  for (let refused = ''; refused === '' && written.length < 1_000;) {
    const key = `key:${written.length}`;
    refused = await client.sendCommand(['SET', key, FILLER]).then(...([() => '', String] as const));
    if (refused === '') written.push(key);
    else expect(refused).toMatch(/No space left on device/);
  }
  client.destroy();
  return written;
}
