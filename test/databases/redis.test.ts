// Redis through the API: a real worker, real servers, a real client.
import { createClient } from '@redis/client';
import { describeEngine, openHall, type Hall } from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

describeEngine('redis', () => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  async function redisCommand(address: string, ...words: string[]): Promise<unknown> {
    const client = createClient({
      url: address,
      socket: { tls: true, rejectUnauthorized: false, reconnectStrategy: false, connectTimeout: 5_000 },
    });
    client.on('error', () => {});
    await client.connect();
    try {
      return await client.sendCommand(words);
    } finally {
      client.destroy();
    }
  }

  const field = async (address: string, section: string, name: string): Promise<string | undefined> =>
    new RegExp(`^${name}:(.*)\r$`, 'm').exec(String(await redisCommand(address, 'INFO', section)))?.[1];
  const as = (address: string, user: { username: string; password: string }): string =>
    address.replace(/\/\/[^@]*@/, `//${user.username}:${user.password}@`);

  test('a database keeps its keys through rotation, stop, restart and restore; its replica follows', async () => {
    const database = await hall.create({ name: 'cache', engine: 'redis' });
    expect([database.status, database.status_reason, database.database_name]).toEqual(['available', null, null]);
    const { body: login } = await hall.call('GET', `/v2/databases/${database.id}/credentials`);
    const address: string = login.endpoints[0].connection_string;
    expect(await redisCommand(address, 'SET', 'greeting', 'hello')).toBe('OK');
    const limits = async (of: string): Promise<unknown[]> => [
      Number(await field(of, 'memory', 'maxmemory')),
      await field(of, 'memory', 'maxmemory_policy'),
      await field(of, 'persistence', 'aof_enabled'),
    ];
    expect(await limits(address)).toEqual([Math.floor(256 * 0.7) * 2 ** 20, 'noeviction', '1']);
    for (const words of [['CONFIG', 'SET', 'maxmemory', '0'], ['SHUTDOWN'], ['REPLICAOF', 'NO', 'ONE']]) {
      await expect(redisCommand(address, ...words)).rejects.toThrow(/NOPERM|no permissions/);
    }

    const rotated = await hall.call('POST', `/v2/databases/${database.id}/credentials/rotate`);
    const renewed: string = rotated.body.endpoints[0].connection_string;
    await expect(redisCommand(address, 'GET', 'greeting')).rejects.toThrow(/WRONGPASS/);
    expect(await redisCommand(renewed, 'GET', 'greeting')).toBe('hello');
    // Programs that know only a password have the same.
    const alone = (of: string): string => of.replace(/\/\/[^:]*:/, '//:');
    expect(await redisCommand(alone(renewed), 'GET', 'greeting')).toBe('hello');
    await expect(redisCommand(alone(address), 'GET', 'greeting')).rejects.toThrow(/WRONGPASS/);

    const users = `/v2/databases/${database.id}/users`;
    const { body: reader } = await hall.call('POST', users, { body: { username: 'reports', access: 'read_only' } });
    await waitFor('the user', () => redisCommand(as(renewed, reader), 'GET', 'greeting').catch(() => null));
    await expect(redisCommand(as(renewed, reader), 'SET', 'greeting', 'x')).rejects.toThrow(/NOPERM/);
    expect((await hall.call('DELETE', `${users}/${reader.id}`)).status).toBe(204);
    await waitFor('the end of the user', () =>
      redisCommand(as(renewed, reader), 'GET', 'greeting').then(
        () => null,
        (error: Error) => /WRONGPASS/.test(error.message) || null,
      ),
    );

    const asked = await hall.call('POST', `/v2/databases/${database.id}/backups`, { body: {} });
    const backup = await waitFor('the backup', async () => {
      const { body } = await hall.call('GET', `/v2/databases/${database.id}/backups`);
      return ['completed', 'failed'].includes(body.data[0].status) ? body.data[0] : null;
    });
    expect([backup.id, backup.status]).toEqual([asked.body.id, 'completed']);
    const { body: place } = await hall.call('GET', `/v2/databases/${database.id}/backups/${backup.id}/download`);
    const file = await fetch(place.url.replace(/^https?:\/\/[^/]+/, hall.service.url));
    expect([file.status, Buffer.from(await file.arrayBuffer()).toString('latin1', 0, 5)]).toEqual([200, 'REDIS']);

    const made = await hall.call('POST', `/v2/databases/${database.id}/replicas`, { body: { name: 'reader' } });
    expect(made.status).toBe(201);
    const replica = `/v2/databases/${database.id}/replicas/${made.body.id}`;
    const following = (): Promise<unknown> =>
      waitFor(
        'the replica',
        async () => ((await hall.call('GET', replica)).body.status === 'available' ? true : null),
        60_000,
      );
    await following();
    const endpoint = await hall.call('POST', `/v2/databases/${database.id}/endpoints`, {
      body: { name: 'reads', target: 'replicas', replica_id: made.body.id },
    });
    const reads = renewed.replace(/:\d+$/, `:${endpoint.body.port}`);
    await waitFor('the key at the replica', async () =>
      (await redisCommand(reads, 'GET', 'greeting').catch(() => null)) === 'hello' ? true : null,
    );
    await expect(redisCommand(reads, 'SET', 'greeting', 'x')).rejects.toThrow(/READONLY/);

    expect(await redisCommand(renewed, 'SET', 'greeting', 'goodbye')).toBe('OK');
    expect((await hall.act(database.id, 'restart')).status).toBe('available');
    expect(await redisCommand(renewed, 'GET', 'greeting')).toBe('goodbye');
    expect((await hall.act(database.id, 'stop')).status).toBe('stopped');
    await expect(redisCommand(renewed, 'PING')).rejects.toThrow(/ECONNREFUSED/);
    expect((await hall.act(database.id, 'start')).status).toBe('available');
    expect(await redisCommand(renewed, 'GET', 'greeting')).toBe('goodbye');
    expect(await hall.act(database.id, 'restore', { backup_id: backup.id })).toMatchObject({
      status: 'available',
      status_reason: null,
    });
    expect(await redisCommand(renewed, 'GET', 'greeting')).toBe('hello');
    await waitFor(
      'the restored key at the replica',
      async () => ((await redisCommand(reads, 'GET', 'greeting').catch(() => null)) === 'hello' ? true : null),
      60_000,
    );

    expect(
      (await hall.call('PATCH', `/v2/databases/${database.id}`, { body: { database_package: 'kv-1vcpu-1gb' } })).status,
    ).toBe(200);
    expect((await hall.settled(database.id)).status).toBe('available');
    expect(await limits(renewed)).toEqual([Math.floor(1024 * 0.7) * 2 ** 20, 'noeviction', '1']);
    expect(await redisCommand(renewed, 'GET', 'greeting')).toBe('hello');
    await hall.remove(database.id);
  }, 180_000);
});
