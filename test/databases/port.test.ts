// A program that is not of the platform listens at a port of DATABASE_PORTS: who was given that port gets another one.
import { createServer, type Server } from 'node:net';
import { describeEngine, eventually, openHall, type Hall } from '../support/database_hall';

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
  const portOf = async (id: string): Promise<number> =>
    (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].port;

  test('a new database takes the next free port and says why', async () => {
    const [first] = hall.service.platform.config.databasePorts;
    await occupy(first);
    await occupy(first + 1);
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
    await eventually('the end of its server', () =>
      occupy(before).then(
        () => true,
        () => null,
      ),
    );
    expect((await hall.act(id, 'start')).status).toBe('available');
    expect(await portOf(id)).not.toBe(before);
  }, 120_000);
});
