// Redis through the API: a real worker, a real server, a real client.
import { createClient } from '@redis/client';
import { describeEngine, eventually, openHall, type Hall } from '../support/database_hall';

describeEngine('redis', () => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  async function say(address: string, ...words: string[]): Promise<unknown> {
    const client = createClient({ url: address, socket: { tls: true, rejectUnauthorized: false, reconnectStrategy: false, connectTimeout: 5_000 } });
    client.on('error', () => {});
    await client.connect();
    try {
      return await client.sendCommand(words);
    } finally {
      client.destroy();
    }
  }

  test('a database keeps its keys through a new password, a backup, a restart and a restore', async () => {
    const database = await hall.create({ name: 'cache', engine: 'redis' });
    expect([database.status, database.status_reason, database.database_name]).toEqual(['available', null, null]);
    const { body: login } = await hall.call('GET', `/v2/databases/${database.id}/credentials`);
    const address: string = login.endpoints[0].connection_string;
    expect(await say(address, 'SET', 'greeting', 'hello')).toBe('OK');

    const rotated = await hall.call('POST', `/v2/databases/${database.id}/credentials/rotate`);
    const renewed: string = rotated.body.endpoints[0].connection_string;
    await expect(say(address, 'GET', 'greeting')).rejects.toThrow(/WRONGPASS/);
    expect(await say(renewed, 'GET', 'greeting')).toBe('hello');

    const asked = await hall.call('POST', `/v2/databases/${database.id}/backups`, { body: {} });
    const backup = await eventually('the backup', async () => {
      const { body } = await hall.call('GET', `/v2/databases/${database.id}/backups`);
      return ['completed', 'failed'].includes(body.data[0].status) ? body.data[0] : null;
    });
    expect([backup.id, backup.status]).toEqual([asked.body.id, 'completed']);
    expect(await say(renewed, 'SET', 'greeting', 'goodbye')).toBe('OK');
    expect((await hall.act(database.id, 'restart')).status).toBe('available');
    expect(await say(renewed, 'GET', 'greeting')).toBe('goodbye');
    expect(await hall.act(database.id, 'restore', { backup_id: backup.id })).toMatchObject({ status: 'available', status_reason: null });
    expect(await say(renewed, 'GET', 'greeting')).toBe('hello');
    await hall.remove(database.id);
  }, 90_000);
});
