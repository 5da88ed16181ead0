// Access keys as rows (createBucketAccessKey, rotateBucketAccessKey): secrets, grants, states
// (docs/contract/resources.md §11.4).
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service.close());

const create = (more: object = {}): Promise<Answer> =>
  service.call('POST', '/v2/bucket_access_keys', { body: { name: 'Uploads', ...more } });
const errorsOf = ({ body }: Answer): string[][] =>
  body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);

test('the secret is shown when the key is made and when it is rotated, and nowhere else', async () => {
  const { status, body } = await create();
  expect(status).toBe(201);
  expect(body).toEqual({
    ...{ id: expect.stringMatching(/^bka_/), project_id: service.project, name: 'Uploads' },
    ...{ access_key_id: expect.stringMatching(/^[A-Z0-9]{20}$/), secret_access_key: expect.stringMatching(/^\w{40}$/) },
    ...{ grants: [], enabled: true, expires_at: null, last_used_at: null, status: 'active' },
    ...{ created_at: expect.any(String), updated_at: body.created_at },
  });
  const path = `/v2/bucket_access_keys/${body.id}`;
  const rotated = await service.call('POST', `${path}/rotate`);
  expect(rotated.body.access_key_id).toBe(body.access_key_id);
  expect(rotated.body.secret_access_key).not.toBe(body.secret_access_key);
  expect((await service.call('GET', path)).body.secret_access_key).toBeNull();
  const rows = JSON.stringify(await service.sql('select * from bucket_access_keys, activity'));
  for (const secret of [body.secret_access_key, rotated.body.secret_access_key]) expect(rows).not.toContain(secret);
});

test('grants name buckets of the project, each once', async () => {
  const { body: bucket } = await service.call('POST', '/v2/buckets', { body: { name: 'granted' } });
  const grants = [
    { bucket_id: bucket.id, permission: 'read' },
    { bucket_id: null, permission: 'full' },
  ];
  const { body } = await create({ grants });
  expect(body.grants).toEqual(grants);
  const listed = await service.call('GET', `/v2/bucket_access_keys?bucket_id=${bucket.id}`);
  expect(listed.body.data.map(({ id }: { id: string }) => id)).toEqual([body.id]);
  expect(errorsOf(await create({ grants: [grants[0], grants[0]] }))).toEqual([['grants.1.bucket_id', 'duplicate']]);
  expect(errorsOf(await create({ grants: [grants[1], { permission: 'read' }] }))).toEqual([
    ['grants.1.bucket_id', 'duplicate'],
  ]);
  const unknown = await create({ grants: [{ bucket_id: `bkt_${'0'.repeat(26)}`, permission: 'read' }] });
  expect(unknown.body).toMatchObject({ code: 'reference_not_found', field: 'grants.0.bucket_id' });
  expect((await service.call('DELETE', `/v2/buckets/${bucket.id}`)).status).toBe(204);
  expect((await service.call('GET', `/v2/bucket_access_keys/${body.id}`)).body.grants).toEqual([grants[1]]);
});

test('a key is disabled, enabled, and expires by the clock', async () => {
  const { body } = await create();
  const path = `/v2/bucket_access_keys/${body.id}`;
  const patch = async (change: object): Promise<string> =>
    (await service.call('PATCH', path, { body: change })).body.status;
  expect(await patch({ enabled: false })).toBe('disabled');
  expect(await patch({ enabled: true })).toBe('active');
  expect(errorsOf(await service.call('PATCH', path, { body: { expires_at: '2020-01-01T00:00:00Z' } }))).toEqual([
    ['expires_at', 'too_small'],
  ]);
  await service.sql(`update bucket_access_keys set expires_at = now() - interval '1 second' where id = $1`, [body.id]);
  expect((await service.call('GET', path)).body.status).toBe('expired');
  expect(await patch({ expires_at: null })).toBe('active');
  expect((await service.call('GET', '/v2/bucket_access_keys?status=disabled')).body.data).toEqual([]);
});
