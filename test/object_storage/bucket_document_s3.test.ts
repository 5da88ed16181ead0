// Settings of a bucket as clients of S3 and browsers meet them: CORS, websites and lifecycle rules.
import { request } from 'node:http';
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;

beforeAll(async () => {
  world = await startS3();
  client = world.client();
}, 60_000);

afterAll(() => world.close());

test('a website has index and error documents at its own host name', async () => {
  const website = { index_document: 'index.html', error_document: '404.html' };
  const { name: Bucket } = await world.bucket({ access: 'public_read', website });
  for (const Key of ['index.html', 'dir/index.html', '404.html'])
    await client.send(new s3.PutObjectCommand({ Bucket, Key, Body: Key, ContentType: 'text/html' }));
  const get = (path: string): Promise<[number, string]> =>
    new Promise((resolve, reject) => {
      const headers = { host: `${Bucket}.${world.service.platform.config.s3WebsiteDomain}` };
      request(world.endpoint + path, { headers }, (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('end', () =>
          resolve([response.statusCode ?? 0, response.headers.location ?? String(Buffer.concat(pieces))]),
        );
      })
        .on('error', reject)
        .end();
    });
  expect([await get('/'), await get('/dir/'), await get('/dir'), await get('/none')]).toEqual([
    [200, 'index.html'],
    [200, 'dir/index.html'],
    [302, '/dir/'],
    [404, '404.html'],
  ]);
});

test('CORS rules of S3 are those of the API, and answer preflights', async () => {
  const { id, name: Bucket } = await world.bucket({ access: 'public_read' });
  const rule = { AllowedOrigins: ['https://shop.example.com'], AllowedMethods: ['PUT'], AllowedHeaders: ['x-amz-*'] };
  await client.send(new s3.PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules: [rule] } }));
  const { body } = await world.service.call('GET', `/v2/buckets/${id}/cors`);
  expect(body.rules).toMatchObject([{ allowed_origins: rule.AllowedOrigins, allowed_headers: ['x-amz-*'] }]);
  await new Promise((resolve) => setTimeout(resolve, 600));
  const preflight = (method: string): Promise<Response> =>
    fetch(`${world.endpoint}/${Bucket}/a`, {
      method: 'OPTIONS',
      headers: { origin: 'https://shop.example.com', 'access-control-request-method': method },
    });
  const allowed = await preflight('PUT');
  expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([
    200,
    'https://shop.example.com',
  ]);
  expect((await preflight('DELETE')).status).toBe(403);
});

test('an origin may have one * anywhere, and rules keep their ID', async () => {
  const { id, name: Bucket } = await world.bucket({ access: 'public_read' });
  const put = (origin: string) => {
    const rule = { ID: 'shop', AllowedOrigins: [origin], AllowedMethods: ['PUT'] };
    return client.send(new s3.PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules: [rule] } }));
  };
  for (const origin of ['https://*.*.example.com', 'https://shop.example.com ', ''])
    await expect(put(origin)).rejects.toThrow();
  for (const origin of ['shop.example.com', 'https://shop.example.com/a', 'ftp://*']) {
    await put(origin);
    const refused = await world.service.call('PUT', `/v2/buckets/${id}/cors`, {
      body: { rules: [{ allowed_origins: [origin], allowed_methods: ['PUT'] }] },
    });
    expect(refused.body.errors).toMatchObject([{ field: 'rules.0.allowed_origins.0' }]);
  }
  const { body } = await world.service.call('PUT', `/v2/buckets/${id}/cors`, {
    body: { rules: [{ allowed_origins: ['https://*.*.example.com'], allowed_methods: ['PUT'] }] },
  });
  expect(body.errors).toMatchObject([{ field: 'rules.0.allowed_origins.0', code: 'invalid_format' }]);
  for (const [allowed, origins] of [
    [
      'https://*.example.com',
      { 'https://a.example.com': 200, 'https://example.com': 403, 'http://a.example.com': 403 },
    ],
    ['*.example.com', { 'http://a.example.com': 200, 'https://example.org': 403 }],
    ['http://localhost:*', { 'http://localhost:5173': 200, 'http://localhost.example.com': 403 }],
    ['http*://shop.example.com', { 'http://shop.example.com': 200, 'https://shop.example.com': 200 }],
    ['https://preview-*.example.com', { 'https://preview-7.example.com': 200, 'https://shop.example.com': 403 }],
  ] as const) {
    await put(allowed);
    const rules = (await client.send(new s3.GetBucketCorsCommand({ Bucket }))).CORSRules;
    expect(rules).toMatchObject([{ ID: 'shop', AllowedOrigins: [allowed] }]);
    const shown = await world.service.call('GET', `/v2/buckets/${id}/cors`);
    expect(shown.body.rules).toMatchObject([{ allowed_origins: [allowed] }]);
    for (const [origin, status] of Object.entries(origins)) {
      const headers = { origin, 'access-control-request-method': 'PUT' };
      const answer = await fetch(`${world.endpoint}/${Bucket}/a`, { method: 'OPTIONS', headers });
      expect([allowed, origin, answer.status]).toEqual([allowed, origin, status]);
      expect(answer.headers.get('access-control-allow-origin')).toBe(status === 200 ? origin : null);
    }
  }
});

test('lifecycle rules expire objects, noncurrent versions and unfinished uploads', async () => {
  const { id, name: Bucket } = await world.bucket({ versioning: true });
  for (const Key of ['old/a', 'old/b', 'new/a']) await client.send(new s3.PutObjectCommand({ Bucket, Key, Body: Key }));
  await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: 'old/upload' }));
  const ages = { expire_after_days: 2, expire_noncurrent_after_days: 2, abort_incomplete_uploads_after_days: 2 };
  const old = `now() - interval '3 days'`;
  await world.service.sql(`update bucket_objects set modified_at = ${old} where bucket_id = $1`, [id]);
  await world.service.sql(`update bucket_uploads set created_at = ${old} where bucket_id = $1`, [id]);
  const apply = () =>
    world.service.call('PUT', `/v2/buckets/${id}/lifecycle`, {
      body: { rules: [{ id: 'old', prefix: 'old/', ...ages }] },
    });
  const keys = async (): Promise<string[]> =>
    (await world.service.call('GET', `/v2/buckets/${id}/objects?versions=true&limit=100`)).body.data.map(
      ({ key, type }: { key: string; type: string }) => `${type} ${key}`,
    );
  const until = async (expected: string[]): Promise<void> => {
    for (let turn = 0; turn < 100 && String(await keys()) !== String(expected); turn += 1)
      await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await keys()).toEqual(expected);
  };
  await apply();
  await until(['object new/a', 'delete_marker old/a', 'object old/a', 'delete_marker old/b', 'object old/b']);
  expect(await world.service.sql('select id from bucket_uploads where bucket_id = $1', [id])).toEqual([]);
  await world.service.sql(
    `update bucket_objects set modified_at = ${old}, noncurrent_at = case when not is_latest then ${old} end
      where bucket_id = $1`,
    [id],
  );
  await apply();
  await until(['object new/a', 'delete_marker old/a', 'delete_marker old/b']);
});

test('settings read back as they were written, and versioning that was never on is suspended', async () => {
  const { name: Bucket } = await world.bucket();
  const rules = [
    { ID: 'old', Prefix: 'a/', Status: 'Enabled' as const, Expiration: { Days: 3 } },
    { ID: 'new', Filter: { Prefix: 'b/' }, Status: 'Enabled' as const, Expiration: { Days: 4 } },
  ];
  await client.send(
    new s3.PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules: rules } }),
  );
  expect((await client.send(new s3.GetBucketLifecycleConfigurationCommand({ Bucket }))).Rules).toEqual(rules);
  const cors = { AllowedOrigins: ['https://*.example.com', 'http://localhost:3000'], AllowedMethods: ['GET'] };
  await client.send(new s3.PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules: [cors] } }));
  expect((await client.send(new s3.GetBucketCorsCommand({ Bucket }))).CORSRules).toEqual([cors]);
  const versioning = { Bucket, VersioningConfiguration: { Status: 'Suspended' as const } };
  await client.send(new s3.PutBucketVersioningCommand(versioning));
  expect((await client.send(new s3.GetBucketVersioningCommand({ Bucket }))).Status).toBe('Suspended');
  await client.send(new s3.PutObjectCommand({ Bucket, Key: 'a', Body: 'x' }));
  const gone = await client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a' }));
  expect(gone.DeleteMarker).toBe(true);
  const { Versions = [], DeleteMarkers = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
  expect([Versions, DeleteMarkers.map(({ VersionId }) => VersionId)]).toEqual([[], ['null']]);
  const acl = await client.send(new s3.GetBucketAclCommand({ Bucket }));
  expect(acl.Grants).toMatchObject([{ Grantee: { Type: 'CanonicalUser' }, Permission: 'FULL_CONTROL' }]);
});

test('nothing is answered for a bucket that was deleted a moment ago', async () => {
  const { id, name: Bucket } = await world.bucket();
  const calls = () => [
    client.send(new s3.GetObjectCommand({ Bucket, Key: 'a' })),
    client.send(new s3.ListObjectsV2Command({ Bucket })),
    client.send(new s3.ListObjectVersionsCommand({ Bucket })),
    client.send(new s3.GetObjectTaggingCommand({ Bucket, Key: 'a' })),
    client.send(new s3.PutObjectCommand({ Bucket, Key: 'a', Body: 'x' })),
    client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a' })),
  ];
  for (const call of calls()) await codeOf(call);
  await client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a' }));
  expect((await world.service.call('DELETE', `/v2/buckets/${id}`)).status).toBe(204);
  expect(await Promise.all(calls().map(codeOf))).toEqual(Array(6).fill('NoSuchBucket'));
  expect(await codeOf(client.send(new s3.HeadBucketCommand({ Bucket })))).toBe(404);
  expect(await codeOf(client.send(new s3.DeleteBucketCommand({ Bucket })))).toBe('NoSuchBucket');
});

test('lifecycle rules are read as they were written, with the default for transitions', async () => {
  const { name: Bucket } = await world.bucket();
  const rule = { Status: 'Enabled' as const, Expiration: { Days: 30 } };
  const Rules = [
    { ...rule, ID: 'logs', Filter: { Prefix: 'logs/' } },
    { ...rule, ID: 'an empty prefix', Filter: { Prefix: '' } },
    { ...rule, ID: 'no prefix', Filter: {} },
  ];
  const TransitionDefaultMinimumObjectSize = 'all_storage_classes_128K' as const;
  await client.send(
    new s3.PutBucketLifecycleConfigurationCommand({
      ...{ Bucket, LifecycleConfiguration: { Rules }, TransitionDefaultMinimumObjectSize },
    }),
  );
  const read = await client.send(new s3.GetBucketLifecycleConfigurationCommand({ Bucket }));
  expect([read.Rules, read.TransitionDefaultMinimumObjectSize]).toEqual([Rules, TransitionDefaultMinimumObjectSize]);
});
