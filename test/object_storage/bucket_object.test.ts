// Objects as the API shows them: listBucketObjects, getBucketUsage, presignBucketObject.
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

test('objects are listed by key, in groups, page by page', async () => {
  const { body } = await create();
  for (const key of ['a', 'b/1', 'b/2', 'b\u{10ffff}', 'c', '\u{10ffff}']) await addObject(body.id, { key });
  const list = async (query: string): Promise<string[]> => {
    const found: string[] = [];
    for (let cursor = ''; ;) {
      const { body: page } = await service.call('GET', `/v2/buckets/${body.id}/objects?${query}${cursor}`);
      found.push(
        ...page.data.map(({ key, type }: { key: string; type: string }) => (type === 'prefix' ? `[${key}]` : key)),
      );
      if (!page.next_cursor) return found;
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
  };
  const all = ['a', 'b/1', 'b/2', 'b\u{10ffff}', 'c', '\u{10ffff}'];
  for (const limit of [1, 2, 100]) {
    expect(await list(`limit=${limit}`)).toEqual(all);
    expect(await list(`limit=${limit}&versions=true`)).toEqual(all);
    expect(await list(`limit=${limit}&prefix=b`)).toEqual(all.slice(1, 4));
    const grouped = ['a', '[b/]', 'b\u{10ffff}', 'c', '\u{10ffff}'];
    expect(await list(`limit=${limit}&delimiter=%2F`)).toEqual(grouped);
    expect(await list(`limit=${limit}&delimiter=%2F&versions=true`)).toEqual(grouped);
    expect(await list(`limit=${limit}&delimiter=%2F&prefix=b%2F`)).toEqual(['b/1', 'b/2']);
  }
  const refused = await service.call('GET', `/v2/buckets/${body.id}/objects?delimiter=-`);
  expect(refused.body).toMatchObject({ code: 'invalid_query_parameter', parameter: 'delimiter' });
});

test('usage covers 30 days, and at most 92', async () => {
  const { body } = await create();
  await addObject(body.id, { key: 'a', size: 1000 });
  await service.sql(`insert into bucket_days values ($1, '2026-01-05', 900, 20, 3), ($1, '2026-01-07', 1000, 5, 1)`, [
    body.id,
  ]);
  const path = `/v2/buckets/${body.id}/usage`;
  const { body: usage } = await service.call('GET', `${path}?from=2026-01-05&to=2026-01-31`);
  expect(usage).toEqual({
    ...{ size_bytes: 1000, object_count: 1, noncurrent_size_bytes: 0, egress_bytes: 25, requests: 4 },
    ...{ from: '2026-01-05', to: '2026-01-31' },
    daily: [
      { date: '2026-01-05', size_bytes: 900, egress_bytes: 20, requests: 3 },
      { date: '2026-01-07', size_bytes: 1000, egress_bytes: 5, requests: 1 },
    ],
  });
  const { body: usual } = await service.call('GET', path);
  expect((Date.parse(usual.to) - Date.parse(usual.from)) / 86_400_000).toBe(29);
  for (const wrong of ['from=2026-02-30', 'from=2026-02-02&to=2026-02-01', 'from=2026-01-01&to=2026-04-03', 'to=x'])
    expect((await service.call('GET', `${path}?${wrong}`)).body.code).toBe('invalid_query_parameter');
});

test('a presigned URL says what it is for, and needs the right to read secrets', async () => {
  const { body } = await create();
  const path = `/v2/buckets/${body.id}/presign`;
  const { status, body: answer } = await service.call('POST', path, {
    body: { key: 'a b/ü+%', expires_in_seconds: 60 },
  });
  expect(status).toBe(200);
  const url = new URL(answer.url);
  expect([url.origin, url.pathname]).toEqual(['http://127.0.0.1:9000', `/${body.name}/a%20b/%C3%BC%2B%25`]);
  expect(url.searchParams.get('X-Amz-Expires')).toBe('60');
  expect(answer.method).toBe('GET');
  const removal = (await service.call('POST', path, { body: { key: 'a', method: 'DELETE' } })).body;
  expect([removal.method, new URL(removal.url).pathname]).toEqual(['DELETE', `/${body.name}/a`]);
  expect(errorsOf(await service.call('POST', path, { body: { key: 'a', content_type: 'text/plain' } }))).toEqual([
    ['content_type', 'depends_on'],
  ]);
  const key = await service.mintKey({ scopes: ['read', 'write'] });
  expect((await service.call('POST', path, { key, body: { key: 'a' } })).body.code).toBe('insufficient_scope');
});
