// Operations: listProjectDatabaseBackups.
// Backups of databases that are in the bin or purged, as rows: they are listed with their project, and restored.
import { expireBackups } from '../../models/databases/database_backup/job_queries';
import { binCalls } from '../support/bin_calls';
import { fresh, scheduled, service, setUpBackups } from '../support/databases/database_backup_cases';
import { newName } from '../support/databases/databases';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
setUpBackups({ RETENTION_OF_DELETED_DAYS: '7' });
const bin = binCalls(() => service);
const listed = async (query = '', options = {}): Promise<any[]> => {
  const answer = await service.call('GET', `/v2/projects/${service.project}/database_backups${query}`, options);
  expect([answer.status, answer.text]).toEqual([200, expect.anything()]);
  return answer.body.data;
};
const ids = (rows: any[]): string[] => rows.map(({ id }) => id);
const expire = (): Promise<number> => service.platform.database.transaction((session) => expireBackups(session, 100));

test('backups are listed with their database, whether it is there, in the bin or purged', async () => {
  const [first, second] = [await fresh(), await fresh({ name: 'orders-of-2025' })];
  const [one, two] = [await scheduled(first.id), await scheduled(second.id)];
  expect(ids(await listed())).toEqual([two, one]);
  expect(ids(await listed('?deleted=true'))).toEqual([]);
  const entry = await bin.deleted(`/v2/databases/${second.id}`);
  const deleted_at = expect.stringMatching(/^2\d{3}-.*Z$/);
  const inBin = await listed('?deleted=true');
  expect(inBin).toEqual([
    {
      ...{ id: two, type: 'scheduled', note: null, engine_version: '17', size_bytes: 1000, finished_at: null },
      ...{ expires_at: '2036-01-01T00:00:00.000Z', status: 'completed', status_reason: null },
      created_at: expect.stringMatching(/Z$/),
      database: { id: second.id, name: 'orders-of-2025', engine: 'postgresql', deleted_at },
    },
  ]);
  expect(ids(await listed('?deleted=false'))).toEqual([one]);
  expect(ids(await listed(`?database_id=${second.id}`))).toEqual([two]);
  expect((await bin.purge(entry)).status).toBe(204);
  expect(await listed('?deleted=true')).toEqual(inBin);
  const query = `query ($id: ID!) { listProjectDatabaseBackups(id: $id, deleted: true) {
    data { id database { name deleted_at } } } }`;
  const { body } = await service.call('POST', '/graphql', { body: { query, variables: { id: service.project } } });
  expect(body.data.listProjectDatabaseBackups.data).toEqual([
    { id: two, database: { name: 'orders-of-2025', deleted_at } },
  ]);
  const restore_from = { database_id: second.id, backup_id: two };
  const copy = { name: 'orders-of-2025', engine: 'postgresql', restore_from };
  const made = await service.call('POST', '/v2/databases', { body: copy });
  expect([made.status, made.body.restore_from]).toEqual([201, { ...restore_from, point_in_time: null }]);
});

test('they are shown to members of the project alone', async () => {
  const { id } = await fresh();
  const backup = await scheduled(id);
  await bin.purge(await bin.deleted(`/v2/databases/${id}`));
  const viewer = await service.mintKey({ role: 'viewer', scopes: ['read'] });
  expect(ids(await listed('?deleted=true', { key: viewer }))).toContain(backup);
  const them = await bin.stranger();
  const place = `/v2/projects/${service.project}/database_backups`;
  expect((await service.call('GET', place, them)).status).toBe(404);
  const own = (await service.call('GET', `/v2/projects/${them.project}/database_backups`, them)).body.data;
  expect(own).toEqual([]);
  const restore_from = { database_id: id, backup_id: backup };
  const body = { name: newName(), engine: 'postgresql', restore_from };
  expect((await service.call('POST', '/v2/databases', { body, ...them })).body.code).toBe('reference_not_found');
});

test('the last whole one does not expire while its database is in the bin, and some days after a purge', async () => {
  const { id } = await fresh();
  const past = { expires_at: new Date(Date.now() - 1000).toISOString() };
  const older = await scheduled(id, past);
  const last = await scheduled(id, past);
  const failed = await scheduled(id, { ...past, status: 'failed' });
  const entry = await bin.deleted(`/v2/databases/${id}`);
  await expire();
  expect(ids(await listed(`?database_id=${id}`))).toEqual([last]);
  expect([older, failed]).not.toContain(last);
  await bin.purge(entry);
  const [kept] = await listed(`?database_id=${id}`);
  expect(kept.id).toBe(last);
  expect(Date.parse(kept.expires_at) - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
  await service.sql('update database_backups set expires_at = now() where id = $1', [last]);
  await expire();
  expect(await listed(`?database_id=${id}`)).toEqual([]);
});
