// Replicas: they read what the primary has, write nothing, and become databases of their own.
import { connect, describeEngine, eventually, openHall, type Hall } from '../support/database_hall';

describeEngine('postgresql', () => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  test('a replica follows, is promoted to a database with its rows, and the primary goes on', async () => {
    const { id } = await hall.create({ name: 'primary', engine: 'postgresql', engine_version: '15' });
    const { body: login } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    const address: string = login.endpoints[0].connection_string;
    await connect(address, async (client) => void (await client.query('create table notes as select generate_series(1, 5) as id')));

    const made = await hall.call('POST', `/v2/databases/${id}/replicas`, { body: { name: 'reader' } });
    expect(made.status).toBe(201);
    const place = `/v2/databases/${id}/replicas/${made.body.id}`;
    const replica = await eventually('the replica', async () => {
      const { body } = await hall.call('GET', place);
      return body.status === 'provisioning' ? null : body;
    }, 60_000);
    expect([replica.status, replica.status_reason]).toEqual(['available', null]);

    const endpoint = await hall.call('POST', `/v2/databases/${id}/endpoints`, { body: { name: 'reads', target: 'replicas', replica_id: replica.id } });
    expect(endpoint.status).toBe(201);
    await eventually('the endpoint', async () => (await hall.call('GET', `/v2/databases/${id}/endpoints/${endpoint.body.id}`)).body.status === 'active' || null);
    const reads = address.replace(/:\d+\//, `:${endpoint.body.port}/`);
    await eventually('the rows at the replica', async () => {
      let rows = 0;
      await connect(reads, async (client) => void (rows = (await client.query('select count(*)::int as count from notes')).rows[0].count));
      return rows === 5 || null;
    });
    await connect(reads, async (client) => void (await expect(client.query('insert into notes values (6)')).rejects.toThrow(/read-only/)));

    const promoted = await hall.call('POST', `${place}/promote`);
    expect([promoted.status, promoted.body.status]).toEqual([expect.any(Number), 'provisioning']);
    const own = await hall.settled(promoted.body.id);
    expect([own.status, own.status_reason]).toEqual(['available', null]);
    const { body: fresh } = await hall.call('GET', `/v2/databases/${own.id}/credentials`);
    await connect(fresh.endpoints[0].connection_string, async (client) => {
      await client.query('insert into notes values (6)');
      expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 6 }]);
    });
    await connect(address, async (client) => expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 5 }]));
    await eventually('the end of the replica', async () => (await hall.call('GET', place)).status === 404 || null);
    expect((await hall.settled(id)).status).toBe('available');
  }, 120_000);
});
