// The control plane is killed with -9 while databases are made, backed up and deleted: it goes on where it was, and nothing
// is left.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPlant, type Plant } from '../support/bad_days_program';
import { connect, describeEngine, eventually, inDatabasePlace, killHard, type Place } from '../support/database_hall';
import { processesWith } from '../support/processes';

/** Into the making of a server. */
const MOMENTS_MS = [150, 500, 1_000, 1_800];

describeEngine('postgresql', () => {
  let place: Place;
  let plant: Plant;

  beforeAll(async () => {
    place = inDatabasePlace();
    plant = await startPlant(place.settings);
  }, 60_000);
  afterAll(async () => {
    await plant?.close();
    place.clear();
  }, 60_000);

  const statusOf = async (id: string): Promise<string> => (await plant.call('GET', `/v2/databases/${id}`)).body.status;
  const available = (id: string): Promise<unknown> => eventually('the database', async () => ((await statusOf(id)) === 'available' ? true : null));
  const killAfter = async (ms: number): Promise<void> => {
    await sleep(ms);
    await plant.kill();
    await plant.start();
  };
  const ask = async (id: string, statement: string): Promise<unknown[]> => {
    const { body } = await plant.call('GET', `/v2/databases/${id}/credentials`);
    let rows: unknown[] = [];
    await connect(body.endpoints[0].connection_string, async (client) => void ({ rows } = await client.query(statement)));
    return rows;
  };

  test('a database that is being made, a backup that is being taken and a deletion go on', async () => {
    const ids: string[] = [];
    for (const [index, ms] of MOMENTS_MS.entries()) {
      const made = await plant.call('POST', '/v2/databases', { body: { name: `killed-${index}`, engine: 'postgresql' } });
      ids.push(made.body.id);
      await killAfter(ms);
      await available(made.body.id);
      await ask(made.body.id, 'create table notes as select generate_series(1, 1000) as id');
    }
    const [first = ''] = ids;
    const backup = await plant.call('POST', `/v2/databases/${first}/backups`, { body: {} });
    expect(backup.status).toBe(201);
    await killAfter(300);
    await eventually('the backup', async () => ((await plant.call('GET', `/v2/databases/${first}/backups`)).body.data[0].status === 'completed' ? true : null));

    await ask(first, 'truncate notes');
    await plant.call('POST', `/v2/databases/${first}/restore`, { body: { backup_id: backup.body.id } });
    await killAfter(700);
    await available(first);
    expect(await ask(first, 'select count(*)::int as count from notes')).toEqual([{ count: 1000 }]);

    // As after a power cut: nothing runs any more, neither we nor the servers.
    await plant.kill();
    for (const { pid } of processesWith(`${place.settings.DATABASE_DIR}/`)) killHard(pid);
    await plant.start();
    for (const id of ids) {
      await eventually('the server', async () => ask(id, 'select count(*)::int as count from notes').catch(() => null));
      expect(await ask(id, 'select count(*)::int as count from notes')).toEqual([{ count: 1000 }]);
    }

    for (const id of ids) await plant.call('DELETE', `/v2/databases/${id}`);
    await killAfter(100);
    await eventually('the end of all servers', async () => ((await plant.sql('select 1 from database_ports')).length ? null : true));
    const directory = place.settings.DATABASE_DIR as string;
    expect(readdirSync(directory).filter((name) => !['backups', '.programs'].includes(name))).toEqual([]);
    expect(processesWith(`${directory}/`)).toEqual([]);
    expect(existsSync(path.join(directory, 'backups', first))).toBe(true);
  }, 170_000);
});
