// A key that destroys too much within a minute is paused, in all processes, until a person lets it go on.
import { newBrowser, type Browser } from '../support/identity/browser';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let owner: Browser & { user: { id: string; email: string } };

beforeAll(async () => {
  service = await startService({ settings: { DESTROYING_CALLS_PER_MINUTE: '10' } });
  owner = await newBrowser(service, 'braking@example.com', 'owner');
});
afterAll(() => service.close());

const NOTHING = 'vol_01h455vb4pex5vsknk084sn02q';
const RESUME = 'mutation ($id: ID!) { resumeKey(id: $id) { id paused_at } }';
const remove = (key: string, headers: Record<string, string> = {}): Promise<Answer> =>
  service.call('DELETE', `/v2/volumes/${NOTHING}`, { key, headers });
const idOf = async (key: string): Promise<string> =>
  (await service.call('GET', '/v2/me', { key, project: null })).body.token.id as string;

async function pause(key: string): Promise<void> {
  for (let i = 0; i < 10; i++) expect((await remove(key)).body.code).toBe('not_found');
  expect((await remove(key)).body.code).toBe('key_paused');
}

test('ten calls are fine, the eleventh pauses the key for everything but what it says of itself', async () => {
  const key = await service.mintKey({ kind: 'project' });
  await pause(key);
  const read = await service.call('GET', '/v2/volumes', { key });
  expect([read.status, read.body.code]).toEqual([403, 'key_paused']);
  const me = await service.call('GET', '/v2/me', { key });
  expect(me.body.token.paused_at).toEqual(expect.any(String));
  const { errors } = await service.graphql('{ listVolumes { data { id } } }', {}, { key });
  expect(errors?.[0].extensions.code).toBe('key_paused');
  // The other keys of the project work.
  expect((await service.call('GET', '/v2/volumes')).status).toBe(200);
});

test('dry runs and calls that do not destroy are not counted, and another minute counts anew', async () => {
  const key = await service.mintKey();
  for (let i = 0; i < 15; i++) await remove(key, { 'Dry-Run': 'true' });
  for (let i = 0; i < 10; i++) await remove(key);
  await service.sql(
    `update api_keys set destroyed_at =
    array(select t - interval '61 seconds' from unnest(destroyed_at) t) where id = $1`,
    [await idOf(key)],
  );
  expect((await remove(key)).body.code).toBe('not_found');
  const [row] = await service.sql('select cardinality(destroyed_at) as count from api_keys where id = $1', [
    await idOf(key),
  ]);
  expect(row.count).toBe(1);
});

test('thirty at once pause it after ten, once', async () => {
  const key = await service.mintKey({ kind: 'project' });
  const codes = (await Promise.all(Array.from({ length: 30 }, () => remove(key)))).map(
    ({ body }) => body.code as string,
  );
  expect(codes.filter((code) => code === 'not_found')).toHaveLength(10);
  expect(codes.filter((code) => code === 'key_paused')).toHaveLength(20);
  const events = await service.sql(`select 1 from activity where action = 'api_key.paused' and key_id = $1`, [
    await idOf(key),
  ]);
  expect(events).toHaveLength(1);
});

test('the owners are told, and one of them lets it go on, for an hour', async () => {
  const key = await service.mintKey({ kind: 'project' });
  const before = await service.sql('select id from email_outbox');
  await pause(key);
  const mails = await service.sql<{ recipients: string[] }>('select recipients from email_outbox where id <> all($1)', [
    before.map(({ id }) => id),
  ]);
  expect(mails.map(({ recipients }) => recipients)).toContainEqual([owner.user.email]);
  const id = await idOf(key);
  const { listPausedKeys } = await owner.data('{ listPausedKeys { data { id name project_id } } }');
  expect(listPausedKeys.data).toContainEqual({ id, name: 'Test key', project_id: service.project });
  const stranger = await newBrowser(service, 'elsewhere@example.com');
  expect((await stranger.refused(RESUME, { id })).code).toBe('not_found');
  expect((await owner.data(RESUME, { id })).resumeKey).toEqual({ id, paused_at: null });
  for (let i = 0; i < 15; i++) expect((await remove(key)).body.code).toBe('not_found');
  await service.sql(`update api_keys set resumed_at = now() - interval '61 minutes' where id = $1`, [id]);
  expect((await remove(key)).body.code).toBe('key_paused');
});

test('a key does not let itself go on, nor one that may not delete another', async () => {
  const key = await service.mintKey();
  await pause(key);
  const id = await idOf(key);
  const resume = (by: string): Promise<Answer> =>
    service.call('POST', `/v2/paused_keys/${id}/resume`, { key: by, project: null });
  expect((await resume(key)).body.code).toBe('key_paused');
  expect((await resume(await service.mintKey({ may_destroy: false }))).body.code).toBe('destroy_not_allowed');
  expect((await resume(await service.mintKey())).status).toBe(200);
  expect((await service.call('GET', '/v2/volumes', { key })).status).toBe(200);
});

test('sessions are not braked: a person sees what they do', async () => {
  for (let i = 0; i < 12; i++)
    expect((await owner.refused('mutation ($id: ID!) { deleteVolume(id: $id) }', { id: NOTHING })).code).toBe(
      'not_found',
    );
});
