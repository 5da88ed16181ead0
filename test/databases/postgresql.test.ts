// PostgreSQL from the first request to the last trace: a real worker, a real server, real clients.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { connect, describeEngine, openHall, refusal, type Hall } from '../support/database_hall';

describeEngine('postgresql', () => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  test('a database is made, used, given a new password, stopped, started and deleted without a trace', async () => {
    const database = await hall.create({ name: 'orders', engine: 'postgresql' });
    expect([database.status, database.status_reason]).toEqual(['available', null]);
    const { body: login } = await hall.call('GET', `/v2/databases/${database.id}/credentials`);
    const address: string = login.endpoints[0].connection_string;

    await connect(address, async (client) => {
      await client.query('create table orders (id int primary key)');
      await client.query('insert into orders select generate_series(1, 100)');
    });
    expect(await refusal(address.replace('sslmode=require', 'sslmode=disable'))).toMatch(/no encryption|no pg_hba|SSL/i);

    const user = await hall.call('POST', `/v2/databases/${database.id}/users`, { body: { username: 'reports', access: 'read_only' } });
    expect(user.status).toBe(201);
    const reader = address.replace(`app:${login.password}@`, `reports:${user.body.password}@`);
    await connect(reader, async (client) => {
      expect((await client.query('select count(*)::int as count from orders')).rows).toEqual([{ count: 100 }]);
      await expect(client.query('insert into orders values (101)')).rejects.toThrow(/permission denied|read-only/);
    });

    const rotated = await hall.call('POST', `/v2/databases/${database.id}/credentials/rotate`);
    expect(rotated.body.password).not.toBe(login.password);
    expect(await refusal(address)).toMatch(/password authentication failed/);
    const renewed: string = rotated.body.endpoints[0].connection_string;
    await connect(renewed, async (client) => void (await client.query('insert into orders values (101)')));

    expect((await hall.act(database.id, 'stop')).status).toBe('stopped');
    expect(await refusal(renewed)).toMatch(/ECONNREFUSED/);
    expect((await hall.act(database.id, 'start')).status).toBe('available');
    await connect(renewed, async (client) => expect((await client.query('select count(*)::int as count from orders')).rows).toEqual([{ count: 101 }]));
    const before = await hall.serverPid(database.id);
    expect((await hall.act(database.id, 'restart')).status).toBe('available');
    expect(await hall.serverPid(database.id)).not.toBe(before);

    const larger = await hall.call('PATCH', `/v2/databases/${database.id}`, { body: { database_package: 's-1vcpu-1gb' } });
    expect(larger.body.status).toBe('updating');
    expect((await hall.settled(database.id)).status).toBe('available');
    await connect(renewed, async (client) => expect((await client.query('show max_connections')).rows).not.toEqual([{ max_connections: '23' }]));

    await hall.remove(database.id);
    expect(existsSync(path.join(hall.databaseDir, database.id))).toBe(false);
    expect(await hall.service.sql('select * from database_ports where owner_id = $1', [database.id])).toEqual([]);
  }, 90_000);
});
