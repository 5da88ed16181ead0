/** @tier heavy @quarter 4 @covers drivers/database drivers/hosted_server jobs/databases/database */
// The control plane is killed with -9 while databases are made, backed up, restored, resized, upgraded, promoted and
// deleted: it goes on where it was, and nothing is left.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import {
  connect,
  describePostgresqlWithTools,
  hasEngine,
  openDatabaseWorkshop,
  type DatabaseWorkshop,
} from '../../support/databases/database_hall';
import { processesWith, signalAll } from '../../support/processes/processes';
import { waitFor } from '../../support/wait_for';

/** Into the making of a server. */
const MOMENTS_MS = [200, 1_000];
/** Into what goes on with servers that are there. */
const AT_WORK_MS = [400, 2_500];
const PATIENCE_MS = 120_000;

describePostgresqlWithTools(() => {
  let place: DatabaseWorkshop;
  let plant: Plant;

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    plant = await startPlant(place.settings);
  }, PATIENCE_MS);
  afterAll(async () => {
    await plant?.close();
    signalAll(processesWith(`${place.databaseDir}/`).map(({ pid }) => pid));
    place.clear();
  }, PATIENCE_MS);

  const statusOf = async (id: string): Promise<string> => (await plant.call('GET', `/v2/databases/${id}`)).body.status;
  const available = (id: string): Promise<unknown> =>
    waitFor('the database', async () => ((await statusOf(id)) === 'available' ? true : null), PATIENCE_MS);
  const killAfter = async (ms: number): Promise<void> => {
    await sleep(ms);
    await plant.kill();
    // On a busy machine its own database may not answer in time: then whoever looks after it starts it again.
    await plant.start().catch(() => plant.start());
  };
  const ask = async (id: string, statement: string): Promise<unknown[]> => {
    const { body } = await plant.call('GET', `/v2/databases/${id}/credentials`);
    let rows: unknown[] = [];
    await connect(
      body.endpoints[0].connection_string,
      async (client) => void ({ rows } = await client.query(statement)),
    );
    return rows;
  };

  /** A Redis beside. */
  const cached = async (): Promise<{ id: string; say(...words: string[]): Promise<unknown> }> => {
    const {
      body: { id },
    } = await plant.call('POST', '/v2/databases', { body: { name: 'cache', engine: 'redis' } });
    await available(id);
    const redisCommand = async (...words: string[]): Promise<unknown> => {
      const { body } = await plant.call('GET', `/v2/databases/${id}/credentials`);
      const client = createClient({
        url: body.endpoints[0].connection_string,
        socket: { tls: true, rejectUnauthorized: false, reconnectStrategy: false, connectTimeout: 5_000 },
      });
      client.on('error', () => {});
      await client.connect();
      return client.sendCommand(words).finally(() => client.destroy());
    };
    await redisCommand('SET', 'kept', 'word');
    // On the disk a second later at most.
    await sleep(1_500);
    return { id, say: redisCommand };
  };

  test('whatever was being done goes on, and nothing is lost or left', async () => {
    const ids: string[] = [];
    // Two each time, in different stages.
    for (const [index, ms] of MOMENTS_MS.entries()) {
      for (const name of [`killed-${index}`, `killed-${index}-too`])
        ids.push((await plant.call('POST', '/v2/databases', { body: { name, engine: 'postgresql' } })).body.id);
      await killAfter(ms);
    }
    for (const id of ids) {
      await available(id);
      await ask(id, 'create table notes as select generate_series(1, 1000) as id');
    }
    const [first = ''] = ids;
    const cache = hasEngine('redis') ? await cached() : null;
    const backup = await plant.call('POST', `/v2/databases/${first}/backups`, { body: {} });
    expect(backup.status).toBe(201);
    await killAfter(300);
    await waitFor(
      'the backup',
      async () =>
        (await plant.call('GET', `/v2/databases/${first}/backups`)).body.data[0].status === 'completed' ? true : null,
      PATIENCE_MS,
    );

    const versions: { version: string }[] = (await plant.call('GET', '/v2/databases/engines')).body.data.find(
      ({ id }: { id: string }) => id === 'postgresql',
    ).versions;
    const newest = versions[0]?.version as string;
    const [, larger = '', older = '', primary = ''] = ids;
    const replica = await plant.call('POST', `/v2/databases/${primary}/replicas`, { body: { name: 'reader' } });
    const follows = `/v2/databases/${primary}/replicas/${replica.body.id}`;
    await killAfter(900);
    await waitFor(
      'the replica',
      async () => ((await plant.call('GET', follows)).body.status === 'available' ? true : null),
      PATIENCE_MS,
    );

    // One goes back, one grows, one becomes newer, and a replica becomes one of its own: all at once, and killed in the
    // middle, twice.
    const before = (await plant.call('GET', `/v2/databases/${older}`)).body.engine_version;
    await ask(first, 'truncate notes');
    const asked = [
      await plant.call('POST', `/v2/databases/${first}/restore`, { body: { backup_id: backup.body.id } }),
      await plant.call('PATCH', `/v2/databases/${larger}`, { body: { database_package: 's-1vcpu-1gb' } }),
      await plant.call('POST', `${follows}/promote`),
      ...(before === newest
        ? []
        : [await plant.call('POST', `/v2/databases/${older}/upgrade`, { body: { engine_version: newest } })]),
    ];
    expect(asked.map(({ status }) => status).every((status) => status >= 200 && status < 300)).toBe(true);
    ids.push(asked[2]?.body.id);
    if (cache) await plant.call('PATCH', `/v2/databases/${cache.id}`, { body: { database_package: 'kv-1vcpu-1gb' } });
    for (const ms of AT_WORK_MS) await killAfter(ms);
    for (const id of ids) {
      await available(id);
      expect((await plant.call('GET', `/v2/databases/${id}`)).body.status_reason).toBeNull();
      expect(await ask(id, 'select count(*)::int as count from notes')).toEqual([{ count: 1000 }]);
    }
    if (cache) await available(cache.id);
    expect(await ask(larger, 'show max_connections')).toEqual([{ max_connections: '53' }]);
    expect(await ask(older, "select split_part(current_setting('server_version'), '.', 1) as major")).toEqual([
      { major: newest.split('.')[0] },
    ]);
    await waitFor(
      'the end of the replica',
      async () => ((await plant.call('GET', follows)).status === 404 ? true : null),
      PATIENCE_MS,
    );
    await ask(ids.at(-1) as string, 'update notes set id = id');

    // As after a power cut: nothing runs any more, neither we nor the servers.
    await plant.kill();
    signalAll(processesWith(`${place.databaseDir}/`).map(({ pid }) => pid));
    await plant.start();
    for (const id of ids) {
      await waitFor(
        'the server',
        async () => ask(id, 'select count(*)::int as count from notes').catch(() => null),
        PATIENCE_MS,
      );
      expect(await ask(id, 'select count(*)::int as count from notes')).toEqual([{ count: 1000 }]);
    }

    if (cache)
      expect(await waitFor('Redis', () => cache.say('GET', 'kept').catch(() => null), PATIENCE_MS)).toBe('word');

    for (const id of [...ids, ...(cache ? [cache.id] : [])]) await plant.call('DELETE', `/v2/databases/${id}`);
    await killAfter(100);
    await waitFor(
      'the end of all servers',
      async () => ((await plant.sql('select 1 from database_ports')).length ? null : true),
      PATIENCE_MS,
    );
    const directory = place.databaseDir;
    expect(readdirSync(directory).filter((name) => !['backups', '.programs'].includes(name))).toEqual([]);
    expect(processesWith(`${directory}/`)).toEqual([]);
    expect(existsSync(path.join(directory, 'backups', first))).toBe(true);
  }, 400_000);
});
