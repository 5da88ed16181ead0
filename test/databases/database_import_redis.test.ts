/** @tier heavy @quarter 1 @covers drivers/database/redis/import.ts drivers/database/redis/rdb.ts */
// Imports into Redis: snapshots with values of all kinds, and damaged ones.
import { createClient } from '@redis/client';
import { describeEngine, openHall, type Hall } from '../support/databases/database_hall';
import { importsOf, type Imports } from '../support/databases/imports';
import type { TenantClient } from '../support/databases/redis_client';
import { waitFor } from '../support/wait_for';

jest.setTimeout(180_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */

const VALUES: string[][] = [
  ['SET', 'text', 'hello'],
  ['SET', 'number', '12345'],
  ['SET', 'negative', '-7'],
  ['SET', 'long', 'abc'.repeat(20_000)],
  ['SET', '1234567', 'a key that is a number'],
  ['SET', `k${'y'.repeat(500)}`, 'a key that is compressed'],
  ['SET', 'expires', 'later', 'EX', '100000'],
  ['RPUSH', 'list', ...Array.from({ length: 300 }, (_, i) => `item ${i}`)],
  ['RPUSH', 'large_items', 'x'.repeat(20_000), 'y'],
  ['SADD', 'integers', '1', '2', '3'],
  ['SADD', 'few', 'a', 'b'],
  ['SADD', 'many', ...Array.from({ length: 2000 }, (_, i) => `member ${i}`)],
  ['ZADD', 'scores', '1.5', 'a', '-inf', 'b', '2', 'c'],
  ['ZADD', 'scores_many', ...Array.from({ length: 500 }, (_, i) => [`${i}.25`, `m${i}`]).flat()],
  ['HSET', 'fields', 'a', '1', 'b', '2'],
  ['HSET', 'fields_many', ...Array.from({ length: 1000 }, (_, i) => [`f${i}`, 'v'.repeat(i % 80)]).flat()],
  ['XADD', 'stream', '1-1', 'a', '1'],
  ['XADD', 'stream', '2-1', 'b', '2'],
  ['XGROUP', 'CREATE', 'stream', 'group', '0'],
  ['XREADGROUP', 'GROUP', 'group', 'reader', 'COUNT', '1', 'STREAMS', 'stream', '>'],
  ['PFADD', 'hyperloglog', 'a', 'b', 'c'],
  ['SETBIT', 'bits', '7', '1'],
];

async function connect({ password, endpoints }: any): Promise<TenantClient> {
  const socket = { host: '127.0.0.1', port: endpoints[0].port, tls: true as const, rejectUnauthorized: false };
  const client = createClient({ username: 'app', password, RESP: 2, disableClientInfo: true, socket });
  client.on('error', () => undefined);
  await client.connect();
  return client as unknown as TenantClient;
}

describeEngine('redis', () => {
  let hall: Hall;
  let from: { id: string; client: TenantClient };
  let to: { id: string; client: TenantClient; imports: Imports };
  let snapshot: Buffer;

  async function database(name: string): Promise<{ id: string; client: TenantClient; imports: Imports }> {
    const { id } = await hall.create({ name, engine: 'redis' });
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    return { id, client: await connect(body), imports: importsOf(hall, id) };
  }

  beforeAll(async () => {
    hall = await openHall();
    from = await database('source');
    to = await database('target');
    for (const command of VALUES) await from.client.sendCommand(command);
    await from.client.sendCommand(['SELECT', '3']);
    await from.client.sendCommand(['SET', 'elsewhere', '1']);
    await from.client.sendCommand(['SELECT', '0']);
    const place = `/v2/databases/${from.id}/backups`;
    const { id } = (await hall.call('POST', place, { body: {} })).body;
    await waitFor('the backup', async () =>
      (await hall.call('GET', `${place}/${id}`)).body.status === 'completed' ? true : null,
    );
    const { url } = (await hall.call('GET', `${place}/${id}/download`)).body;
    snapshot = Buffer.from(await (await fetch(url)).arrayBuffer());
  });
  afterAll(async () => {
    for (const one of [from, to]) one?.client.destroy();
    await hall?.close();
  });

  const keys = async (client: TenantClient) => ((await client.sendCommand(['KEYS', '*'])) as string[]).sort();
  /** By what a client reads of it: the order in a hash is another one in each server. */
  async function content(client: TenantClient, key: string): Promise<unknown> {
    const type = String(await client.sendCommand(['TYPE', key]));
    const read: Record<string, string[]> = {
      ...{ string: ['GET', key], list: ['LRANGE', key, '0', '-1'], set: ['SMEMBERS', key], hash: ['HGETALL', key] },
      ...{ zset: ['ZRANGE', key, '0', '-1', 'WITHSCORES'], stream: ['XRANGE', key, '-', '+'] },
    };
    const found = (await client.sendCommand(read[type]!)) as unknown;
    return [type, type === 'set' || type === 'hash' ? (found as string[]).sort() : found];
  }

  test('a snapshot is there with all its values', async () => {
    const done = await to.imports.send(snapshot);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    const count = new Set(
      VALUES.map(([, key, stream]) => (key === 'CREATE' || key === 'GROUP' ? 'stream' : (key ?? stream))),
    ).size;
    expect(done.tables).toEqual([
      { name: 'db0', rows_read: count, rows: count },
      { name: 'db3', rows_read: 1, rows: 1 },
    ]);
    expect(await keys(to.client)).toEqual(await keys(from.client));
    for (const key of await keys(from.client))
      expect([key, await content(to.client, key)]).toEqual([key, await content(from.client, key)]);
    expect(Number(await to.client.sendCommand(['TTL', 'expires']))).toBeGreaterThan(90_000);
    expect(await to.client.sendCommand(['XINFO', 'GROUPS', 'stream'])).toEqual(
      await from.client.sendCommand(['XINFO', 'GROUPS', 'stream']),
    );
    const again = await to.imports.send(snapshot);
    expect(again).toMatchObject({
      status: 'failed',
      status_reason: expect.stringMatching(/not empty.*Nothing was changed/),
    });
    expect(await keys(to.client)).toEqual(await keys(from.client));
    for (const database of ['3', '0']) {
      await to.client.sendCommand(['SELECT', database]);
      await to.client.sendCommand(['FLUSHDB']);
    }
  });

  test('a damaged snapshot leaves an empty database', async () => {
    const other = Buffer.from(snapshot);
    other[snapshot.length - 3]! ^= 1;
    for (const [file, reason] of [
      [snapshot.subarray(0, snapshot.length - 2000), /incomplete/],
      [other, /checksum/],
      [Buffer.from('REDIS0011'), /incomplete/],
      [Buffer.from('REDIS0099\x00\x01a\x01b\xff\0\0\0\0\0\0\0\0', 'latin1'), /newer version/],
      [Buffer.from('REDIS0010\x1f\x01a\x01b\xff', 'latin1'), /unknown kind 31/],
      ['SET a b\n', /no snapshot of Redis/],
    ] as [Uint8Array | string, RegExp][]) {
      const failed = await to.imports.send(file);
      expect([failed.status, failed.status_reason]).toEqual(['failed', expect.stringMatching(reason)]);
      expect(await keys(to.client)).toEqual([]);
    }
  });

  test('bytes that are changed anywhere do not end the server', async () => {
    const pid = await hall.serverPid(to.id);
    for (let seed = 1; seed <= 12; seed += 1) {
      const spoiled = Buffer.from(snapshot);
      for (let at = 9 + seed * 7; at < spoiled.length; at += 1 + Math.floor(spoiled.length / (3 * seed)))
        spoiled[at]! ^= seed;
      const { status } = await to.imports.send(spoiled);
      expect(status).toBe('failed');
      expect(await keys(to.client)).toEqual([]);
    }
    expect(await hall.serverPid(to.id)).toBe(pid);
  });

  test('a file at an address that is not public is refused', async () => {
    for (const url of [
      'https://127.0.0.1:1/dump.rdb',
      'https://localhost/x',
      'https://[::1]/x',
      'https://10.0.0.1/x',
    ]) {
      const { status, body } = await hall.call('POST', to.imports.place, { body: { source: { url } } });
      expect([url, status]).toEqual([url, 201]);
      const failed = await to.imports.ended(body.id);
      expect([url, failed.status, failed.status_reason]).toEqual([url, 'failed', expect.stringMatching(/not public/)]);
    }
    const server = await hall.call('POST', to.imports.place, { body: { source: { url: 'redis://10.0.0.1/0' } } });
    expect([server.status, server.body.code]).toEqual([422, 'validation_failed']);
  });
});
