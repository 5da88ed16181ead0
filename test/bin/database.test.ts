/** @tier heavy @quarter 3 @covers models/databases jobs/databases */
// Databases in the bin: nothing of them runs, and they come back with their data, users, passwords and endpoints.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { connect, describePostgresqlWithTools, openHall, refusal, type Hall } from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let hall: Hall;
beforeAll(async () => {
  hall = await openHall({ RETENTION_OF_DELETED_DAYS: '7' });
});
afterAll(async () => {
  const rows = await hall.service.sql<{ id: string }>('select id from databases where deleted_at is null');
  for (const { id } of rows) await hall.call('DELETE', `/v2/databases/${id}`);
  for (const { id } of await entries()) await hall.call('DELETE', `/v2/bin/${id}`);
  await hall.close();
});

const entries = async (query = ''): Promise<any[]> =>
  (await hall.call('GET', `/v2/projects/${hall.service.project}/bin${query}`)).body.data;
const addressOf = async (id: string): Promise<string> =>
  (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;

async function deleted(id: string): Promise<any> {
  expect((await hall.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
  return (await entries(`?resource_id=${id}`))[0];
}

async function checksum(address: string): Promise<string> {
  let text = '';
  await connect(address, async (client) => {
    text = JSON.stringify((await client.query('select * from notes order by id')).rows);
  });
  return createHash('sha256').update(text).digest('hex');
}

const openSpans = (id: string): Promise<unknown[]> =>
  hall.service.sql('select 1 from usage_spans where resource_id = $1 and ended_at is null', [id]);

test('a deleted database stops, and is the same after it was restored', async () => {
  const { id, ...before } = await hall.create({ name: 'main', engine: 'postgresql' });
  const place = `/v2/databases/${id}`;
  const made = await hall.call('POST', `${place}/endpoints`, {
    body: { name: 'pool', target: 'primary', pool_mode: 'transaction' },
  });
  expect([201, 202, 422]).toContain(made.status);
  const endpoints = (await hall.call('GET', `${place}/endpoints`)).body.data.map(({ name }: any) => name);
  const address = await addressOf(id);
  await connect(address, async (client) => {
    await client.query('create table notes (id int primary key, body text)');
    await client.query(`insert into notes select n, md5(n::text) from generate_series(1, 1000) n`);
  });
  const sum = await checksum(address);
  const pid = await hall.serverPid(id);

  const entry = await deleted(id);
  expect(entry.resource).toEqual({ type: 'database', id, name: 'main' });
  expect(await openSpans(id)).toEqual([]);
  await waitFor('the server stops', () => !existsSync(`/proc/${pid}`));
  expect(await refusal(address)).toContain('ECONNREFUSED');
  expect((await hall.call('GET', place)).status).toBe(404);
  expect(existsSync(path.join(hall.databaseDir, id))).toBe(true);

  const answer = await hall.call('POST', `/v2/bin/${entry.id}/restore`);
  expect([answer.status, answer.body.notes]).toEqual([200, []]);
  const { id: _, ...after } = await hall.settled(id);
  expect({ ...after, updated_at: null }).toEqual({
    ...before,
    updated_at: null,
    point_in_time_window: after.point_in_time_window,
  });
  expect(await addressOf(id)).toBe(address);
  expect(await checksum(address)).toBe(sum);
  expect((await hall.call('GET', `${place}/endpoints`)).body.data.map(({ name }: any) => name)).toEqual(endpoints);
  expect(await openSpans(id)).toHaveLength(1);
  await connect(address, async (client) => void (await client.query(`insert into notes values (0, 'after')`)));
}, 120_000);

describePostgresqlWithTools(() => {
  test('backups outlive a database that was purged, and are restored into a new one', async () => {
    const { id } = await hall.create({ name: 'lost', engine: 'postgresql' });
    const address = await addressOf(id);
    await connect(address, async (client) => {
      await client.query('create table notes (id int primary key, body text)');
      await client.query(`insert into notes values (1, 'kept')`);
    });
    const sum = await checksum(address);
    const backup = (await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} })).body.id;
    await waitFor('the backup', async () => {
      const { body } = await hall.call('GET', `/v2/databases/${id}/backups`);
      return body.data[0].status === 'completed';
    });
    // Who destroys a database deletes its backups first: they come back too, and the directory waits for them.
    const gone = `/v2/databases/${id}/backups/${backup}`;
    expect((await hall.call('DELETE', gone)).status).toBe(204);
    expect((await hall.call('GET', gone)).status).toBe(404);
    const [kept] = await entries(`?resource_id=${backup}`);
    expect(kept.resource).toMatchObject({ type: 'database_backup', name: expect.stringMatching(/^lost, 20/) });
    expect((await hall.call('POST', `/v2/bin/${kept.id}/restore`)).status).toBe(200);
    expect((await hall.call('GET', gone)).body).toMatchObject({ id: backup, status: 'completed' });
    const entry = await deleted(id);
    expect((await hall.call('DELETE', `/v2/bin/${entry.id}`)).status).toBe(204);
    await waitFor('the files go', () => !existsSync(path.join(hall.databaseDir, id)));
    const [row] = await hall.service.sql(
      'select expires_at > now() + $2::interval as kept from database_backups where id = $1',
      [backup, '6 days'],
    );
    expect(row).toEqual({ kept: true });
    const made = await hall.create({
      ...{ name: 'found', engine: 'postgresql' },
      restore_from: { database_id: id, backup_id: backup },
    });
    expect(made.status).toBe('available');
    expect(await checksum(await addressOf(made.id))).toBe(sum);
  }, 120_000);
});
