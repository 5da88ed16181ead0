/** @tier heavy @quarter 3 @covers models/databases jobs/databases drivers/endpoint */
// Databases of all engines in the bin, with what hangs on them: users, poolers, open endpoints, replicas, schedules.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createClient } from '@redis/client';
import mysql from 'mysql2/promise';
import { binCalls } from '../support/bin_calls';
import {
  connect,
  describeEngine,
  describePostgresqlWithTools,
  openHall,
  type Hall,
} from '../support/databases/database_hall';
import { processesWith } from '../support/processes/processes';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
type Ask = (address: string, statement: string) => Promise<unknown>;

const ROWS = 1000;
const WITHIN_MS = 90_000;

async function askPostgresql(address: string, statement: string): Promise<unknown> {
  let rows: unknown;
  await connect(address, async (client) => void (rows = (await client.query(statement)).rows));
  return rows;
}

async function askMariadb(address: string, statement: string): Promise<unknown> {
  const { hostname: host, port, username: user, password, pathname } = new URL(address);
  const client = await mysql.createConnection({
    ...{ host, port: Number(port), user, password, database: pathname.slice(1) },
    ...{ ssl: { rejectUnauthorized: false }, connectTimeout: 5_000 },
  });
  try {
    return (await client.query(statement))[0];
  } finally {
    client.destroy();
  }
}

/** A statement is a line of words. */
async function askRedis(address: string, line: string): Promise<unknown> {
  const client = createClient({
    url: address,
    socket: { tls: true, rejectUnauthorized: false, reconnectStrategy: false, connectTimeout: 5_000 },
  });
  client.on('error', () => {});
  await client.connect();
  try {
    return await client.sendCommand(line.split(' '));
  } finally {
    client.destroy();
  }
}

let hall: Hall;
beforeAll(async () => {
  hall = await openHall({ RETENTION_OF_DELETED_DAYS: '7' });
}, 60_000);
afterAll(async () => {
  await hall?.close();
}, 120_000);
const bin = binCalls(() => hall.service);

const get = async (place: string): Promise<any> => (await hall.call('GET', place)).body;
const list = async (place: string): Promise<any[]> => (await get(place)).data;
const addressOf = async (id: string): Promise<string> =>
  (await get(`/v2/databases/${id}/credentials`)).endpoints[0].connection_string;
const sumOf = (rows: unknown): string => createHash('sha256').update(JSON.stringify(rows)).digest('hex');
const as = (address: string, user: { username: string; password: string }): string =>
  address.replace(/\/\/[^@]*@/, `//${user.username}:${user.password}@`);
const withPort = (address: string, port: number): string => address.replace(/:\d+(\/|$|\?)/, `:${port}$1`);

async function made(place: string, body: object): Promise<any> {
  const answer = await hall.call('POST', place, { body });
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}

/** Waits until a child has a status. */
const becomes = (place: string, status: string): Promise<any> =>
  waitFor(
    `${place} is ${status}`,
    async () => {
      const body = await get(place);
      return body.status === status ? body : null;
    },
    WITHIN_MS,
  );

/** Without what may differ after a restore. */
function same(rows: any[]): any[] {
  return rows.map(({ updated_at: _, replication_lag_seconds: __, status_reason: ___, ...row }) => row);
}

const refused = (ask: Ask, address: string, statement: string): Promise<string> =>
  ask(address, statement).then(
    () => 'answered',
    (error: NodeJS.ErrnoException) => `${error.code ?? ''} ${error.message}`,
  );

interface Case {
  engine: string;
  ask: Ask;
  fill: string[];
  sum: string;
  add: string;
}

const FILL = ['create table notes (id int primary key, body varchar(40))'];
const CASES: Case[] = [
  {
    engine: 'mariadb',
    ask: askMariadb,
    fill: [...FILL, `insert into notes select seq, md5(seq) from seq_1_to_${ROWS}`],
    sum: 'select * from notes order by id',
    add: `insert into notes values (0, 'after')`,
  },
  {
    engine: 'redis',
    ask: askRedis,
    fill: [`LPUSH notes ${Array.from({ length: ROWS }, (_, n) => `value-${n}`).join(' ')}`, 'SET greeting hello'],
    sum: 'LRANGE notes 0 -1',
    add: 'SET greeting goodbye',
  },
];

for (const { engine, ask, fill, sum, add } of CASES)
  describeEngine(engine as 'redis', () => {
    test(`${engine}: nothing of it runs, it is equal after a restore, and a purge leaves nothing`, async () => {
      const { id, ...before } = await hall.create({ name: `shop-${engine}`, engine });
      const place = `/v2/databases/${id}`;
      const address = await addressOf(id);
      for (const statement of fill) await ask(address, statement);
      const reader = await made(`${place}/users`, { username: 'reports', access: 'read_only' });
      await waitFor('the user', () => ask(as(address, reader), sum).catch(() => null), WITHIN_MS);
      const had = { sum: sumOf(await ask(address, sum)), users: await list(`${place}/users`) };
      const entry = await bin.deleted(place);
      await waitFor('nothing of it runs', () => processesWith(`${hall.databaseDir}/${id}`).length === 0, WITHIN_MS);
      expect(await refused(ask, address, sum)).toContain('ECONNREFUSED');
      expect(await bin.restored(entry)).toEqual([]);
      const { id: _, ...after } = await hall.settled(id);
      expect(same([after])).toEqual(same([{ ...before, point_in_time_window: after.point_in_time_window }]));
      expect([await addressOf(id), await list(`${place}/users`)]).toEqual([address, had.users]);
      for (const one of [address, as(address, reader)]) expect(sumOf(await ask(one, sum))).toBe(had.sum);
      expect(await refused(ask, as(address, reader), add)).toMatch(/denied|NOPERM/);
      await ask(address, add);
      await stoppedOneComesBackStopped(id);
      expect((await hall.act(id, 'start')).status).toBe('available');
      await ask(address, sum);
      await purged(id);
    }, 180_000);
  });

describePostgresqlWithTools(() => {
  test('comes back with its pooler, open endpoint, replica, user and schedule', async () => {
    const schedule = { enabled: true, hour_utc: 3, retention_days: 9 };
    const { id } = await hall.create({ name: 'main', engine: 'postgresql', backup_schedule: schedule });
    const place = `/v2/databases/${id}`;
    const address = await addressOf(id);
    await askPostgresql(address, 'create table notes (id int primary key, body text)');
    await askPostgresql(address, `insert into notes select n, md5(n::text) from generate_series(1, ${ROWS}) n`);
    const sum = 'select * from notes order by id';
    const reader = await made(`${place}/users`, { username: 'reports', access: 'read_only' });
    const replica = await made(`${place}/replicas`, { name: 'reader' });
    await becomes(`${place}/replicas/${replica.id}`, 'available');
    const pool = await made(`${place}/endpoints`, { name: 'pool', pool_mode: 'transaction', pool_size: 2 });
    const reads = { name: 'reads', target: 'replicas', replica_id: replica.id };
    const ofReplica = await made(`${place}/endpoints`, reads);
    const spread = await made(`${place}/endpoints`, { name: 'spread', target: 'replicas' });
    const open = await made(`${place}/endpoints`, {
      ...{ name: 'open', access: 'public', allowed_sources: ['192.0.2.0/24', '127.0.0.1/32'] },
    });
    const children = [pool, ofReplica, spread, open];
    for (const { id: child } of children) await becomes(`${place}/endpoints/${child}`, 'active');
    const lists = ['users', 'endpoints', 'replicas', 'backups'];
    const shown = async (): Promise<any[]> =>
      Promise.all(lists.map(async (what) => same(await list(`${place}/${what}?sort=created_at`))));
    const had = { lists: await shown(), sum: sumOf(await askPostgresql(address, sum)), database: await get(place) };
    const addresses = [address, ...[pool, ofReplica, spread].map(({ port }) => withPort(address, port))];
    for (const one of addresses) expect(sumOf(await askPostgresql(one, sum))).toBe(had.sum);

    const entry = await bin.deleted(place);
    const runs = (): unknown[] =>
      [id, replica.id, pool.id, spread.id].flatMap((one) => processesWith(`/${one}`).map(({ args }) => args));
    await waitFor('nothing of it runs', () => runs().length === 0, WITHIN_MS);
    for (const one of addresses) expect(await refused(askPostgresql, one, sum)).toContain('ECONNREFUSED');
    expect((await hall.call('GET', `${place}/replicas`)).status).toBe(404);

    expect(await bin.restored(entry)).toEqual([]);
    await hall.settled(id);
    await becomes(`${place}/replicas/${replica.id}`, 'available');
    for (const { id: child } of children) await becomes(`${place}/endpoints/${child}`, 'active');
    expect(await shown()).toEqual(had.lists);
    expect((await get(place)).backup_schedule).toEqual(had.database.backup_schedule);
    for (const one of [...addresses, as(address, reader)])
      await waitFor(
        `the rows at ${one.replace(/.*:/, '')}`,
        () =>
          askPostgresql(one, sum).then(
            (rows) => sumOf(rows) === had.sum,
            () => null,
          ),
        WITHIN_MS,
      );
    // The replica follows.
    await askPostgresql(address, `insert into notes values (0, 'after')`);
    const newest = 'select body from notes where id = 0';
    await waitFor(
      'the new row at the replica',
      async () => ((await askPostgresql(addresses[2] as string, newest)) as unknown[]).length === 1,
      WITHIN_MS,
    );
    await purged(id, [replica.id, pool.id, spread.id]);
  }, 300_000);
});

async function stoppedOneComesBackStopped(id: string): Promise<void> {
  const place = `/v2/databases/${id}`;
  expect((await hall.act(id, 'stop')).status).toBe('stopped');
  const had = await list(`${place}/endpoints`);
  expect(await bin.restored(await bin.deleted(place))).toEqual([]);
  expect((await hall.settled(id)).status).toBe('stopped');
  expect(same(await list(`${place}/endpoints`))).toEqual(same(had));
}

/** Deletes a database and purges it: files, processes, ports and rows go. */
async function purged(id: string, children: string[] = []): Promise<void> {
  const ports = (await list(`/v2/databases/${id}/endpoints`)).map(({ port }) => port);
  expect((await bin.purge(await bin.deleted(`/v2/databases/${id}`))).status).toBe(204);
  const all = [id, ...children];
  const left = async (): Promise<unknown[]> => [
    ...all.filter((one) => existsSync(path.join(hall.databaseDir, one))),
    ...all.flatMap((one) => processesWith(`/${one}`).map(({ args }) => args)),
    ...(await hall.service.sql('select owner_id from database_ports where owner_id = any($1)', [all])),
    ...(await hall.service.sql('select port from database_ports where port = any($1)', [ports])),
    ...(await hall.service.sql('select id from database_endpoints where database_id = $1', [id])),
    ...(await hall.service.sql('select id from database_replicas where database_id = $1', [id])),
  ];
  let last: unknown[] = [];
  await waitFor('nothing is left', async () => (last = await left()).length === 0, WITHIN_MS).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last)}`);
  });
}
