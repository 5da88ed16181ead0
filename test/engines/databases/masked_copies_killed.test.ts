/** @tier heavy @quarter 3 @covers drivers/database/masks drivers/database/postgresql/masks drivers/database/mariadb */
// The control plane is killed with -9 while copies are masked: each goes on, and is masked once and as a whole.
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import {
  connect,
  describePostgresqlWithTools,
  hasEngine,
  openDatabaseWorkshop,
  testWhere,
  type DatabaseWorkshop,
} from '../../support/databases/database_hall';
import { processesWith, signalAll } from '../../support/processes/processes';
import { waitFor } from '../../support/wait_for';

/** Into the making of a copy. */
const MOMENTS_MS = [1_000, 3_000, 5_500];
const PATIENCE_MS = 180_000;
const COUNT = 3_000;

jest.setTimeout(900_000);

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

  const settled = (id: string): Promise<string> =>
    waitFor(
      'the database',
      async () => {
        const { body } = await plant.call('GET', `/v2/databases/${id}`);
        return ['available', 'failed'].includes(body.status)
          ? `${body.status} ${body.status_reason ?? ''}`.trim()
          : null;
      },
      PATIENCE_MS,
    );
  const made = async (body: object): Promise<string> => (await plant.call('POST', '/v2/databases', { body })).body.id;
  const ask = async (id: string, engine: string, statement: string): Promise<Record<string, unknown>> => {
    const { body } = await plant.call('GET', `/v2/databases/${id}/credentials`);
    if (engine === 'mariadb') {
      const { port } = body.endpoints[0];
      const connection = await createConnection({ host: '127.0.0.1', port, user: 'app', password: body.password });
      await connection.query('use app');
      const [rows] = await connection.query(statement);
      await connection.end();
      return (rows as Record<string, unknown>[])[0] ?? {};
    }
    let rows: Record<string, unknown>[] = [];
    await connect(
      body.endpoints[0].connection_string,
      async (client) => void ({ rows } = await client.query(statement)),
    );
    return rows[0] ?? {};
  };

  const MASK = [
    { table: 'people', column: 'email', rule: 'hash' },
    { table: 'orders', column: 'mail', rule: 'hash' },
    { table: 'people', column: 'note', rule: 'expression', value: `concat(note, '!')` },
  ];
  const EXPECTED = { plain: 0, joined: COUNT, once: COUNT };
  const STATE = `select (select count(*) from people where email like '%@example.org') as plain,
    (select count(*) from people join orders on mail = email) as joined,
    (select count(*) from people where note = 'x!') as once`;

  async function killedWhileMasked(engine: string, statements: readonly string[]): Promise<void> {
    const original = await made({ name: `${engine}-original`, engine });
    expect(await settled(original)).toBe('available');
    for (const statement of statements) await ask(original, engine, statement);
    const backup_id = (await plant.call('POST', `/v2/databases/${original}/backups`, { body: {} })).body.id;
    await waitFor(
      'the backup',
      async () =>
        (await plant.call('GET', `/v2/databases/${original}/backups/${backup_id}`)).body.status === 'completed' || null,
      PATIENCE_MS,
    );
    for (const [index, ms] of MOMENTS_MS.entries()) {
      const id = await made({ name: `${engine}-copy-${index}`, engine, copy_of: { backup_id }, mask: MASK });
      await sleep(ms);
      await plant.kill();
      await plant.start().catch(() => plant.start());
      expect([ms, await settled(id)]).toEqual([ms, 'available']);
      const state = await ask(id, engine, STATE);
      expect(Object.fromEntries(Object.entries(state).map(([name, value]) => [name, Number(value)]))).toEqual(EXPECTED);
      await plant.call('DELETE', `/v2/databases/${id}`);
    }
  }

  test('of PostgreSQL', () =>
    killedWhileMasked('postgresql', [
      `create table people (id serial primary key, email text unique not null, note text)`,
      `create table orders (mail text references people (email))`,
      `insert into people (email, note) select n || '@example.org', 'x' from generate_series(1, ${COUNT}) n`,
      'insert into orders select email from people',
    ]));

  testWhere(hasEngine('mariadb'), 'mariadb is not installed')('of MariaDB', () =>
    killedWhileMasked('mariadb', [
      'create table people (id serial primary key, email varchar(80) unique not null, note text)',
      'create table orders (mail varchar(80), foreign key (mail) references people (email))',
      `insert into people (email, note) select concat(seq, '@example.org'), 'x' from seq_1_to_${COUNT}`,
      'insert into orders select email from people',
    ]),
  );
});
