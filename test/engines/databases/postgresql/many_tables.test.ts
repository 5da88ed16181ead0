/** @tier heavy @quarter 1 @covers drivers/database/postgresql/backups drivers/database/postgresql/configuration.ts */
// A database of 10,000 tables on the smallest package: backups, restores and copies, none of which has a lock to spare.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { connect, describePostgresqlWithTools, openHall, type Hall } from '../../../support/databases/database_hall';
import { waitFor } from '../../../support/wait_for';

const TABLES = 10_000;
const BATCH = 500;

describePostgresqlWithTools(() => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  const ask = async (id: string, ...statements: string[]): Promise<Record<string, unknown>[]> => {
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    let rows: Record<string, unknown>[] = [];
    await connect(body.endpoints[0].connection_string, async (client) => {
      for (const statement of statements) ({ rows } = await client.query(statement));
    });
    return rows;
  };

  test('is backed up, downloaded, restored and copied, and its schema dropped', async () => {
    const { id } = await hall.create({ name: 'many', engine: 'postgresql', database_package: 'dev-1vcpu-256mb' });
    const batches = Array.from({ length: TABLES / BATCH }, (_, at) => at * BATCH);
    await ask(
      id,
      'create schema many',
      ...batches.map(
        (from) => `do $$ begin for n in ${from + 1}..${from + BATCH} loop
          execute format('create table many.t_%s (id int, note text)', n); end loop; end $$`,
      ),
      "insert into many.t_1 values (1, 'first')",
    );
    const { body } = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
    const place = `/v2/databases/${id}/backups/${body.id}`;
    const backup = await waitFor(
      'the backup',
      async () => {
        const found = (await hall.call('GET', place)).body;
        return ['completed', 'failed'].includes(found.status) ? found : null;
      },
      300_000,
    );
    expect([backup.status, backup.status_reason]).toEqual(['completed', null]);
    const { url } = (await hall.call('GET', `${place}/download`)).body;
    const answer = await fetch(url.replace(/^https?:\/\/[^/]+/, hall.service.url));
    const file = path.join(hall.service.dataDir, 'many.dump');
    writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
    const listed = spawnSync('pg_restore', ['--list', file], { encoding: 'utf8', maxBuffer: 64 << 20 });
    expect(listed.stdout.match(/ TABLE DATA many t_/g)?.length).toBe(TABLES);

    const found = await hall.act(id, 'restore', { backup_id: backup.id });
    expect([found.status, found.status_reason]).toEqual(['available', null]);
    const copy = await hall.create({
      name: 'many-copy',
      engine: 'postgresql',
      restore_from: { database_id: id, backup_id: backup.id },
    });
    expect([copy.status, copy.status_reason]).toEqual(['available', null]);
    for (const one of [id, copy.id]) {
      expect(await ask(one, 'select * from many.t_1')).toEqual([{ id: 1, note: 'first' }]);
      expect(await ask(one, "select count(*)::int as n from pg_tables where schemaname = 'many'")).toEqual([
        { n: TABLES },
      ]);
    }
    await ask(id, 'drop schema many cascade');
  }, 590_000);
});
