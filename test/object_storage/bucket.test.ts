// Buckets as rows: createBucket, updateBucket, deleteBucket (docs/contract/resources.md §11.1).
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let serial = 0;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"buckets": 100}' } });
});

afterAll(() => service.close());

const freshName = (): string => `bucket-${(serial += 1)}`;
const create = (more: object = {}): Promise<Answer> =>
  service.call('POST', '/v2/buckets', { body: { name: freshName(), ...more } });
const errorsOf = ({ body }: Answer): string[][] =>
  body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
const addObject = (id: string, object: object): Promise<unknown> =>
  service.sql('select put_bucket_object($1, $2, null)', [
    id,
    JSON.stringify({ version_id: `v${(serial += 1)}`, size: 3, etag: 'abc', file_id: `f${serial}`, ...object }),
  ]);

test('a new bucket answers everything that is promised', async () => {
  const { status, body } = await create({ name: 'shop-assets' });
  expect(status).toBe(201);
  expect(body).toEqual({
    ...{ id: expect.stringMatching(/^bkt_/), project_id: service.project, name: 'shop-assets' },
    ...{ region: service.platform.config.regionId, access: 'private', versioning: false, website: null },
    ...{ object_lock: false, default_retention: null, deletion_protection: false },
    ...{ quota_gb: null, endpoint: 'http://127.0.0.1:9000', public_url: null, object_count: 0, size_bytes: 0 },
    ...{ created_at: expect.any(String), updated_at: body.created_at },
  });
});

test('a name is unique on the whole platform, and stays taken until the bucket is torn down', async () => {
  const { body } = await create();
  const stranger = await service.newProject({ stranger: true });
  const options = { key: stranger.key, project: stranger.id, body: { name: body.name } };
  expect((await service.call('POST', '/v2/buckets', options)).body).toMatchObject({
    code: 'name_taken',
    field: 'name',
  });
  expect((await service.call('DELETE', `/v2/buckets/${body.id}`)).status).toBe(204);
  expect((await service.call('POST', '/v2/buckets', options)).body.code).toBe('name_taken');
});

test('a website needs public_read, and its documents are merged', async () => {
  const refused = await create({ website: {} });
  expect([refused.status, errorsOf(refused)]).toEqual([422, [['website', 'depends_on']]]);
  const { body } = await create({ access: 'public_read', website: { error_document: '404.html' } });
  expect(body.website).toEqual({ index_document: 'index.html', error_document: '404.html' });
  expect(body.public_url).toBe(
    `http://${body.name}.web.s3.localhost:9000`.replace('localhost', service.platform.config.appsDomain),
  );
  const path = `/v2/buckets/${body.id}`;
  const changed = await service.call('PATCH', path, { body: { website: { index_document: 'home.html' } } });
  expect(changed.body.website).toEqual({ index_document: 'home.html', error_document: '404.html' });
  expect(errorsOf(await service.call('PATCH', path, { body: { access: 'private' } }))).toEqual([
    ['website', 'depends_on'],
  ]);
  const off = await service.call('PATCH', path, { body: { access: 'private', website: null } });
  expect(off.body).toMatchObject({ access: 'private', website: null, public_url: null });
});

test('a bucket with an object, a noncurrent version or a delete marker is not deleted', async () => {
  const { body } = await create({ versioning: true });
  const path = `/v2/buckets/${body.id}`;
  await addObject(body.id, { key: 'a' });
  expect((await service.call('DELETE', path)).body.code).toBe('bucket_not_empty');
  await service.sql(`select delete_bucket_object($1, 'a', null, 'm1', null, false, null)`, [body.id]);
  expect((await service.call('GET', `${path}/objects`)).body.data).toEqual([]);
  expect((await service.call('DELETE', path)).body.code).toBe('bucket_not_empty');
  const { body: all } = await service.call('GET', `${path}/objects?versions=true`);
  expect(all.data.map((row: { type: string; version_id: string }) => [row.type, row.version_id])).toEqual([
    ['delete_marker', 'm1'],
    ['object', expect.any(String)],
  ]);
  for (const { version_id } of all.data)
    await service.sql(`select delete_bucket_object($1, 'a', $2, 'x', null, false, null)`, [body.id, version_id]);
  expect((await service.call('DELETE', path)).status).toBe(204);
  const [usage] = await service.sql('select * from bucket_usage where bucket_id = $1', [body.id]);
  expect(usage).toMatchObject({ object_count: 0, size_bytes: 0, noncurrent_size_bytes: 0, upload_bytes: 0 });
});

test('the origin of a CDN zone is not deleted', async () => {
  const { body } = await create();
  const origin = { type: 'bucket', bucket_id: body.id };
  const zone = await service.call('POST', '/v2/cdn_zones', { body: { name: 'assets', origin } });
  expect(zone.status).toBe(201);
  const refused = await service.call('DELETE', `/v2/buckets/${body.id}`);
  expect([refused.status, refused.body.code]).toEqual([409, 'resource_in_use']);
  expect(refused.body.dependents).toEqual([{ type: 'cdn_zone', id: zone.body.id }]);
  await service.call('DELETE', `/v2/cdn_zones/${zone.body.id}`);
  expect((await service.call('DELETE', `/v2/buckets/${body.id}`)).status).toBe(204);
});

test('without an engine nothing is promised', async () => {
  const off = await startService({ settings: { S3_PORT: '0' } });
  try {
    for (const [path, body] of [
      ['/v2/buckets', { name: 'nowhere' }],
      ['/v2/bucket_access_keys', { name: 'nowhere' }],
    ] as const) {
      const answer = await off.call('POST', path, { body });
      expect([answer.status, answer.body.code]).toEqual([409, 'engine_unavailable']);
      expect(answer.body.detail).toContain('S3_PORT');
    }
  } finally {
    await off.close();
  }
});
