// What answers of a bucket with CORS rules say to caches (Fetch standard, CORS protocol and HTTP caches).
import * as s3 from '@aws-sdk/client-s3';
import { startS3, type S3Service } from '../support/object_storage/s3';
import { retryCheck } from '../support/wait_for';

let world: S3Service;

beforeAll(async () => {
  world = await startS3();
});
afterAll(() => world.close());

const shop = 'https://shop.example.com';
const rule = (allowed_origins: string[], allowed_methods = ['GET', 'HEAD']): object => ({
  ...{ allowed_origins, allowed_methods, expose_headers: ['etag'] },
});

type Expected = Record<string, { allows: string | null; vary: string | null }>;
const none = { allows: null, vary: null };

test.each<[string, object[], Expected]>([
  ['no rules', [], { '': none, [shop]: none }],
  ['a rule for other methods', [rule([shop], ['PUT'])], { '': none, [shop]: none }],
  [
    'a rule for everybody',
    [rule(['*'])],
    { '': { allows: '*', vary: null }, [shop]: { allows: '*', vary: null }, null: { allows: '*', vary: null } },
  ],
  [
    'a rule for one',
    [rule([shop])],
    {
      ...{ '': { allows: null, vary: 'Origin' }, [shop]: { allows: shop, vary: 'Origin' } },
      'https://elsewhere.example.com': { allows: null, vary: 'Origin' },
    },
  ],
  [
    'a rule for one, then for everybody',
    [rule([shop]), rule(['*'])],
    {
      ...{ '': { allows: '*', vary: 'Origin' }, [shop]: { allows: shop, vary: 'Origin' } },
      'https://elsewhere.example.com': { allows: '*', vary: 'Origin' },
    },
  ],
])('%s', async (_, rules, expected) => {
  const { id, name: Bucket } = await world.bucket({ access: 'public_read' });
  const put = await world.client().send(new s3.PutObjectCommand({ Bucket, Key: 'font', Body: 'font' }));
  if (rules.length) await world.service.call('PUT', `/v2/buckets/${id}/cors`, { body: { rules } });
  const ask = async (origin: string, key: string, method: string, more: Record<string, string> = {}) => {
    const headers = { ...(origin && { origin }), ...more };
    const { status, headers: given } = await fetch(`${world.endpoint}/${Bucket}/${key}`, { method, headers });
    return {
      status,
      allows: given.get('access-control-allow-origin'),
      vary: given.get('vary'),
      credentials: given.get('access-control-allow-credentials'),
    };
  };
  await retryCheck(async () => {
    for (const [origin, { allows, vary }] of Object.entries(expected)) {
      const answer = { allows, vary, credentials: allows === null || allows === '*' ? null : 'true' };
      expect(await ask(origin, 'font', 'GET')).toEqual({ status: 200, ...answer });
      expect(await ask(origin, 'font', 'HEAD')).toEqual({ status: 200, ...answer });
      expect(await ask(origin, 'font', 'GET', { range: 'bytes=0-1' })).toEqual({ status: 206, ...answer });
      const same = { 'if-none-match': String(put.ETag) };
      expect(await ask(origin, 'font', 'GET', same)).toEqual({ status: 304, ...answer });
      expect(await ask(origin, 'missing', 'GET')).toMatchObject(answer);
    }
  });
});

test('what a preflight answers depends on all that it asks', async () => {
  const { id, name } = await world.bucket();
  await world.service.call('PUT', `/v2/buckets/${id}/cors`, { body: { rules: [rule([shop])] } });
  const headers = { origin: shop, 'access-control-request-method': 'GET' };
  await retryCheck(async () => {
    const answer = await fetch(`${world.endpoint}/${name}/font`, { method: 'OPTIONS', headers });
    expect([answer.status, answer.headers.get('vary')]).toEqual([
      200,
      'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
    ]);
  });
});
