// MariaDB through the API: a real worker, a real server, a real client.
import mysql from 'mysql2/promise';
import { describeEngine, openHall, type Hall } from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

describeEngine('mariadb', () => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  async function ask(address: string, statement: string): Promise<unknown> {
    const { hostname: host, port, username: user, password, pathname } = new URL(address);
    const client = await mysql.createConnection({
      host,
      port: Number(port),
      user,
      password,
      database: pathname.slice(1),
      ssl: { rejectUnauthorized: false },
      connectTimeout: 5_000,
    });
    try {
      return (await client.query(statement))[0];
    } finally {
      client.destroy();
    }
  }

  test('a database keeps its rows through a new password, a stop, a restart, a backup and a restore', async () => {
    const database = await hall.create({ name: 'shop', engine: 'mariadb' });
    expect([database.status, database.status_reason, database.database_name]).toEqual(['available', null, 'app']);
    const { body: login } = await hall.call('GET', `/v2/databases/${database.id}/credentials`);
    const address: string = login.endpoints[0].connection_string;
    await ask(address, 'create table notes (id int primary key)');
    await ask(address, 'insert into notes values (1)');

    const rotated = await hall.call('POST', `/v2/databases/${database.id}/credentials/rotate`);
    const renewed: string = rotated.body.endpoints[0].connection_string;
    await expect(ask(address, 'select 1')).rejects.toThrow(/Access denied/);

    const { body: reader } = await hall.call('POST', `/v2/databases/${database.id}/users`, {
      body: { username: 'reports', access: 'read_only' },
    });
    const reads = renewed.replace(/\/\/[^@]*@/, `//reports:${reader.password}@`);
    await waitFor('the user', () => ask(reads, 'select id from notes').catch(() => null));
    await expect(ask(reads, 'insert into notes values (2)')).rejects.toThrow(/denied/);
    await expect(ask(reads, 'drop table notes')).rejects.toThrow(/denied/);
    expect((await hall.call('DELETE', `/v2/databases/${database.id}/users/${reader.id}`)).status).toBe(204);
    await waitFor('the end of the user', () =>
      ask(reads, 'select 1').then(
        () => null,
        (error: Error) => /Access denied/.test(error.message) || null,
      ),
    );

    await hall.call('POST', `/v2/databases/${database.id}/backups`, { body: {} });
    const backup = await waitFor('the backup', async () => {
      const { body } = await hall.call('GET', `/v2/databases/${database.id}/backups`);
      return ['completed', 'failed'].includes(body.data[0].status) ? body.data[0] : null;
    });
    expect(backup.status).toBe('completed');
    await ask(renewed, 'drop table notes');
    expect((await hall.act(database.id, 'stop')).status).toBe('stopped');
    await expect(ask(renewed, 'select 1')).rejects.toThrow(/ECONNREFUSED/);
    expect((await hall.act(database.id, 'start')).status).toBe('available');
    expect((await hall.act(database.id, 'restart')).status).toBe('available');
    expect(await hall.act(database.id, 'restore', { backup_id: backup.id })).toMatchObject({
      status: 'available',
      status_reason: null,
    });
    expect(await ask(renewed, 'select id from notes')).toEqual([{ id: 1 }]);
    await hall.remove(database.id);
  }, 180_000);
});
