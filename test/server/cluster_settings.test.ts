/** @tier heavy @quarter 4 @covers server/web_processes server/threads.ts core/config.ts */
/** @user any */
// How many processes serve the API, and what keeps them from starting.
import { createServer, type AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { loadConfig } from '../../core/config';
import type { Sql } from '../../core/context';
import { openControlDatabase } from '../../db/control_database';
import { connectionFlags, poolSizeThatFits } from '../../server/platform/connection_budget';
import { type TestDatabase } from '../support/databases/database';
import { startProgram } from '../support/processes/program';
import { databases, settingsOf, setUpCluster } from '../support/deployments/cluster_cases';

jest.setTimeout(120_000);

setUpCluster();

test('a taken port is one line', async () => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  const { port } = holder.address() as AddressInfo;
  const taken = startProgram({ ...(await settingsOf('refused')), WORKER: 'separate', PORT: String(port) });
  expect([await taken.ended, taken.err()]).toEqual([
    1,
    `platform-api: can't listen on 127.0.0.1:${port}: the port is taken\n`,
  ]);
  await new Promise((resolve) => holder.close(resolve));
});

test('the setting is a number or auto; several processes count in PostgreSQL unless told otherwise', () => {
  expect(loadConfig({})).toMatchObject({ webConcurrency: 1, rateLimitStore: 'memory' });
  expect(loadConfig({ WEB_CONCURRENCY: 'auto' }).webConcurrency).toBe(Math.min(availableParallelism(), 128));
  expect(loadConfig({ WEB_CONCURRENCY: '3' })).toMatchObject({ webConcurrency: 3, rateLimitStore: 'postgres' });
  expect(loadConfig({ WEB_CONCURRENCY: '3', RATE_LIMIT_STORE: 'memory' }).rateLimitStore).toBe('memory');
  for (const wrong of ['0', '129', 'all', '1.5'])
    expect(() => loadConfig({ WEB_CONCURRENCY: wrong })).toThrow(
      `WEB_CONCURRENCY is malformed: "${wrong}" (expected auto or integer from 1 to 128)`,
    );
});

describe('connections to PostgreSQL', () => {
  const server = (room: number): Sql => ({ query: async () => [{ room }] }) as unknown as Sql;
  const config = { webConcurrency: 8, databasePoolSize: 10 };

  test('are as many as the setting says, fewer where not all fit, and refused where two each do not fit', async () => {
    expect(await poolSizeThatFits(server(297), config)).toBe(10);
    // 25 are the first process's and spare ones; each of the eight has one beside its pool.
    expect(await poolSizeThatFits(server(97), config)).toBe(8);
    expect(await poolSizeThatFits(server(49), config)).toBe(2);
    await expect(poolSizeThatFits(server(48), config)).rejects.toThrow(
      'WEB_CONCURRENCY=8 needs 49 connections at least, PostgreSQL has 48',
    );
  });

  test('are enough on an embedded server, which is told', async () => {
    expect(connectionFlags({ ...config, webConcurrency: 1 })).toEqual([]);
    expect(connectionFlags({ ...config, webConcurrency: 4 })).toEqual([]);
    expect(connectionFlags(config)).toEqual(['-c', 'max_connections=116']);
    expect(await poolSizeThatFits(server(116 - 3), config)).toBe(10);
  });

  test('of a real server are known', async () => {
    const { url } = databases[0] as TestDatabase;
    const database = openControlDatabase(url, { poolSize: 2 });
    await expect(poolSizeThatFits(database, { ...config, webConcurrency: 128 })).rejects.toThrow(
      /needs 409 connections at least, PostgreSQL has \d+:/,
    );
    await database.close();
  });
});
