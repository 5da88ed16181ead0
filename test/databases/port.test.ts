// A program that is not of the platform listens at a port of DATABASE_PORTS: who was given that port gets another one.
import { createServer, type Server } from 'node:net';
import { describeEngine, openHall, type Hall } from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

describeEngine('redis', () => {
  let hall: Hall;
  const strangers: Server[] = [];

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(async () => {
    for (const stranger of strangers) stranger.close();
    await hall?.close();
  }, 60_000);

  const occupy = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const stranger = createServer().once('error', reject);
      strangers.push(stranger);
      stranger.listen(port, '127.0.0.1', () => resolve());
    });
  /** Takes the port that the next server will be given. */
  const occupyNext = async (): Promise<number> => {
    const [first, last] = hall.service.platform.config.databasePorts;
    const given = new Set(
      (await hall.service.sql<{ port: number }>('select port from database_ports')).map(({ port }) => port),
    );
    for (let port = first; port <= last; port += 1) {
      if (given.has(port)) continue;
      await occupy(port).catch(() => undefined);
      return port;
    }
    throw new Error('no port is left');
  };
  const portOf = async (id: string): Promise<number> =>
    (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].port;

  test('a new database takes the next free port and says why', async () => {
    const [first] = hall.service.platform.config.databasePorts;
    // One that somebody else has already is as good.
    for (const port of [first, first + 1]) await occupy(port).catch(() => undefined);
    const database = await hall.create({ name: 'displaced', engine: 'redis' });
    expect([database.status, database.status_reason]).toEqual(['available', null]);
    expect(await portOf(database.id)).toBeGreaterThan(first + 1);
    const { body } = await hall.call('GET', `/v2/databases/${database.id}/logs`);
    expect(body.data.map(({ message }: { message: string }) => message)).toContainEqual(
      expect.stringMatching(
        new RegExp(`^Another program on the host uses port ${first}\\. The database uses port \\d+ instead\\.$`),
      ),
    );
  }, 120_000);

  test('a database that was stopped meanwhile starts at another port', async () => {
    const { id } = await hall.create({ name: 'returning', engine: 'redis' });
    const before = await portOf(id);
    await hall.act(id, 'stop');
    await waitFor('the end of its server', () =>
      occupy(before).then(
        () => true,
        () => null,
      ),
    );
    expect((await hall.act(id, 'start')).status).toBe('available');
    expect(await portOf(id)).not.toBe(before);
  }, 120_000);

  test('so do a replica, and an endpoint with a program of its own', async () => {
    const { id } = await hall.create({ name: 'spread', engine: 'redis' });
    for (const [kind, body] of [
      ['replica', { name: 'reader' }],
      ['endpoint', { name: 'reads', target: 'replicas' }],
    ] as const) {
      const taken = await occupyNext();
      const made = await hall.call('POST', `/v2/databases/${id}/${kind}s`, { body });
      expect([kind, made.status]).toEqual([kind, 201]);
      const place = `/v2/databases/${id}/${kind}s/${made.body.id}`;
      await waitFor(`the ${kind}`, async () =>
        ['available', 'active'].includes((await hall.call('GET', place)).body.status) ? true : null,
      );
      const lines = (
        await hall.call(
          'GET',
          `/v2/databases/${id}/logs?limit=100&search=Another${kind === 'replica' ? `&replica_id=${made.body.id}` : ''}`,
        )
      ).body.data as {
        message: string;
      }[];
      expect(lines.map(({ message }) => message)).toContainEqual(
        expect.stringMatching(`^Another program on the host uses port ${taken}. The ${kind} uses port \\d+ instead.$`),
      );
    }
  }, 180_000);
});
