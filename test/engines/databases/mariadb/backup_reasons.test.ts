/** @tier heavy @quarter 3 @covers drivers/database/mariadb jobs/databases */
// What people read of a backup that lacks something, or that cannot be made.
import { readdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { createConnection } from 'mysql2/promise';
import { describeEngine, openHall, type Hall } from '../../../support/databases/database_hall';
import { waitFor } from '../../../support/wait_for';

jest.setTimeout(180_000);

describeEngine('mariadb', () => {
  let hall: Hall;
  let id: string;
  let data: string;

  beforeAll(async () => {
    hall = await openHall();
    const made = await hall.create({ name: 'shop', engine: 'mariadb' });
    ({ id } = made);
    data = path.join(hall.databaseDir, id, 'data', made.database_name ?? 'app');
  }, 90_000);
  afterAll(() => hall?.close(), 60_000);

  async function run(...statements: string[]): Promise<void> {
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    const connection = await createConnection(body.endpoints[0].connection_string);
    for (const statement of statements) await connection.query(statement);
    await connection.end();
  }

  const backUp = async (): Promise<string> =>
    `/v2/databases/${id}/backups/${(await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} })).body.id}`;

  test('a completed backup says which view it does not hold', async () => {
    await run(
      'create table gone (a int)',
      'create view on_gone as select a from gone',
      'create table notes (a int) engine = myisam',
      'insert into notes values (1)',
      'drop table gone',
    );
    const backup = await backUp();
    const done = await waitFor('the backup', async () => {
      const { body } = await hall.call('GET', backup);
      return ['completed', 'failed'].includes(body.status) ? body : null;
    });
    expect(done).toMatchObject({
      status: 'completed',
      status_reason: 'Left out: the view `on_gone`, which refers to something that does not exist or may not be read.',
    });
  });

  test('a backup that is tried again says why, and nothing of the host; then it is made', async () => {
    const [file] = readdirSync(data).filter((name) => /^notes.*\.MYD$/.test(name));
    const [there, away] = [path.join(data, String(file)), path.join(data, `${file}.away`)];
    renameSync(there, away);
    // The server has the file open until then.
    await hall.act(id, 'restart');
    const backup = await backUp();
    const running = await waitFor('the reason', async () => {
      const { body } = await hall.call('GET', backup);
      return body.status_reason === null ? null : body;
    });
    renameSync(away, there);
    expect(running.status).toBe('running');
    expect(running.status_reason).toMatch(/^The database could not be dumped\. .*notes.* The backup is tried again\.$/);
    expect(running.status_reason).not.toContain(hall.databaseDir);
    await waitFor('the backup', async () =>
      (await hall.call('GET', backup)).body.status === 'completed' ? true : null,
    );
    expect((await hall.call('GET', backup)).body.status_reason).toMatch(/^Left out: the view `on_gone`/);
  });
});
