// Conditions of bucket policies, evaluated as IAM does, for requests through a trusted proxy.
import * as s3 from '@aws-sdk/client-s3';
import { startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;
let Bucket: string;
let id: string;

beforeAll(async () => {
  world = await startS3({ TRUST_PROXY: '1' });
  client = world.client();
  ({ name: Bucket, id } = await world.bucket());
  await client.send(new s3.PutObjectCommand({ Bucket, Key: 'a', Body: 'x' }));
}, 60_000);

afterAll(() => world.close());

type Condition = Record<string, Record<string, string | boolean | string[]>>;

const arn = (): string => `arn:aws:s3:::${Bucket}`;
const put = (statements: object | object[]) =>
  client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy: JSON.stringify({ Statement: statements }) }));
const statement = (Effect: 'Allow' | 'Deny', Condition?: Condition, Action = 's3:GetObject') => ({
  ...{ Effect, Principal: '*', Action, Resource: [`${arn()}/*`] },
  ...(Condition && { Condition }),
});
type Headers = Record<string, string>;
const get = async (headers: Headers = {}, path = '/a'): Promise<number> =>
  (await fetch(`${world.endpoint}/${Bucket}${path}`, { headers })).status;
const via = (address: string): Headers => ({ 'x-forwarded-for': address });
const allowed = async (Condition: Condition, ...asked: Headers[]): Promise<boolean[]> => {
  await put(statement('Allow', Condition));
  const statuses = [];
  for (const headers of asked) statuses.push(await get(headers));
  return statuses.map((status) => status === 200);
};
/** The same statement as a deny of what is allowed otherwise. */
const denied = async (Condition: Condition, ...asked: Headers[]): Promise<boolean[]> => {
  await put([statement('Allow'), statement('Deny', Condition)]);
  const statuses = [];
  for (const headers of asked) statuses.push(await get(headers));
  return statuses.map((status) => status === 403);
};

const OFFICE = { 'aws:SourceIp': ['192.0.2.0/24', '2001:db8::/32'] };

test('the address is that which the proxy has seen, in any notation', async () => {
  const asked: [string, boolean][] = [
    ['192.0.2.7', true],
    ['192.0.3.7', false],
    ['2001:db8:1::7', true],
    ['2001:db9::7', false],
    ['::ffff:192.0.2.7', true],
    ['::ffff:c000:207', true],
    ['0:0:0:0:0:ffff:c000:0207', true],
    ['192.0.2.7:4711', true],
    ['[2001:db8::7]:4711', true],
    // What the client has sent itself stands on the left of what the proxy adds.
    ['192.0.2.7, 198.51.100.1', false],
    ['198.51.100.1, 192.0.2.7', true],
    ['192.0.2.7,', true],
    ['unknown', false],
    ['0300.0.2.7', false],
  ];
  const headers = asked.map(([address]) => via(address));
  const inside = asked.map(([, isInside]) => isInside);
  expect(await allowed({ IpAddress: OFFICE }, ...headers)).toEqual(inside);
  expect(await denied({ IpAddress: OFFICE }, ...headers)).toEqual(inside);
  // What is no address is in no range: it is denied where others are.
  expect(await denied({ NotIpAddress: OFFICE }, ...headers)).toEqual(inside.map((one) => !one));
  expect(await allowed({ IpAddress: { 'AWS:sourceIP': '192.0.2.7' } }, via('192.0.2.7'), via('192.0.2.8'))).toEqual([
    true,
    false,
  ]);
  expect(await allowed({ IpAddress: { 'aws:SourceIp': '::/0' } }, via('192.0.2.7'), via('2001:db8::1'))).toEqual([
    false,
    true,
  ]);
});

test('the transport is secure where the proxy says so', async () => {
  const asked: Headers[] = ['https', 'http', 'HTTPS', 'https, http', ''].map((text) => ({ 'x-forwarded-proto': text }));
  const secure = [true, false, true, false, false, false];
  expect(await allowed({ Bool: { 'aws:SecureTransport': true } }, ...asked, {})).toEqual(secure);
  const insecure = secure.map((one) => !one);
  expect(await denied({ Bool: { 'aws:SecureTransport': 'false' } }, ...asked, {})).toEqual(insecure);
  expect(await denied({ BoolIfExists: { 'aws:SecureTransport': 'False' } }, ...asked, {})).toEqual(insecure);
});

const from = (referer: string): Headers => ({ referer });
const PAGES = 'https://example.com/*';

test("texts are compared by IAM's rules, also where a header is missing or empty", async () => {
  const asked = [
    from('https://example.com/shop'),
    from('https://example.org/'),
    from('HTTPS://EXAMPLE.COM/'),
    from(''),
  ];
  const key = 'aws:Referer';
  for (const [operator, values, expected] of [
    ['StringLike', PAGES, [true, false, false, false, false]],
    ['StringNotLike', PAGES, [false, true, true, true, true]],
    ['StringLikeIfExists', PAGES, [true, false, false, false, true]],
    ['StringNotLikeIfExists', PAGES, [false, true, true, true, true]],
    ['StringEquals', PAGES, [false, false, false, false, false]],
    ['StringEquals', ['https://example.org/', ''], [false, true, false, true, false]],
    ['StringNotEquals', ['https://example.org/', 'x'], [true, false, true, true, true]],
    ['StringEqualsIgnoreCase', 'https://example.com/', [false, false, true, false, false]],
    ['StringNotEqualsIgnoreCase', 'https://example.com/', [true, true, false, true, true]],
    ['StringLike', ['nothing', 'https://example.???/*'], [true, true, false, false, false]],
    ['StringNotLike', ['nothing', '*org/'], [true, false, true, true, true]],
    ['Null', 'true', [false, false, false, false, true]],
    ['Null', 'false', [true, true, true, true, false]],
  ] as [string, string | string[], boolean[]][]) {
    const condition = { [operator]: { [key]: values } };
    expect([operator, values, await allowed(condition, ...asked, {})]).toEqual([operator, values, expected]);
    expect([operator, values, await denied(condition, ...asked, {})]).toEqual([operator, values, expected]);
  }
});

test('all conditions have to hold, and a request has them all', async () => {
  const both = { StringLike: { 'aws:Referer': PAGES, 'aws:UserAgent': 'Mozilla/*' }, IpAddress: OFFICE };
  const agent = { 'user-agent': 'Mozilla/5.0' };
  const page = from('https://example.com/');
  expect(
    await allowed(
      both,
      { ...page, ...agent, ...via('192.0.2.1') },
      { ...page, ...agent, ...via('198.51.100.1') },
      { ...agent, ...via('192.0.2.1') },
      { ...page, 'user-agent': 'mozilla/5.0', ...via('192.0.2.1') },
    ),
  ).toEqual([true, false, false, false]);
});

test('keys of the project and signed URLs are denied too', async () => {
  await put(statement('Deny', { NotIpAddress: { 'aws:SourceIp': '203.0.113.0/24' } }));
  const signed = await world.service.call('POST', `/v2/buckets/${id}/presign`, { body: { key: 'a' } });
  const url = new URL(signed.body.url);
  const ask = async (address: string): Promise<number> =>
    (await fetch(world.endpoint + url.pathname + url.search, { headers: via(address) })).status;
  expect([await ask('198.51.100.1'), await ask('203.0.113.9')]).toEqual([403, 200]);
  await expect(client.send(new s3.GetObjectCommand({ Bucket, Key: 'a' }))).rejects.toMatchObject({
    name: 'AccessDenied',
  });
});

test('what a write asks for can be a condition', async () => {
  await put([
    statement('Deny', { StringNotEquals: { 's3:x-amz-server-side-encryption': 'AES256' } }, 's3:PutObject'),
    { ...statement('Deny', { StringEquals: { 's3:x-amz-acl': 'public-read' } }, 's3:PutObjectAcl') },
  ]);
  const write = (more: Partial<s3.PutObjectCommandInput>) =>
    client.send(new s3.PutObjectCommand({ Bucket, Key: 'w', Body: 'x', ...more })).then(
      () => 'done',
      ({ name }: Error) => name,
    );
  expect(await write({})).toBe('AccessDenied');
  expect(await write({ ServerSideEncryption: 'AES256' })).toBe('done');
  expect(await write({ ServerSideEncryption: 'AES256', ACL: 'public-read' })).toBe('AccessDenied');
});

test('an upload in parts has what it was created with, and a form what its fields say', async () => {
  const sse = 's3:x-amz-server-side-encryption';
  await put([
    statement('Deny', { StringNotEquals: { [sse]: 'AES256' } }, 's3:PutObject'),
    statement('Deny', { StringNotEquals: { 's3:x-amz-acl': 'bucket-owner-full-control' } }, 's3:PutObject'),
  ]);
  const where = { Bucket, Key: 'parts' };
  const more = { ServerSideEncryption: 'AES256' as const, ACL: 'bucket-owner-full-control' as const };
  const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ ...where, ...more }));
  const part = { ...where, UploadId, PartNumber: 1 };
  const { ETag } = await client.send(new s3.UploadPartCommand({ ...part, Body: 'x' }));
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
  await client.send(new s3.CompleteMultipartUploadCommand({ ...where, UploadId, MultipartUpload }));
  const found = await client.send(new s3.GetObjectCommand(where));
  expect(found.ServerSideEncryption).toBe('AES256');
  // Headers beside a form do not stand for its fields.
  await put([
    statement('Allow', undefined, 's3:PutObject*'),
    statement('Deny', { StringNotEquals: { [sse]: 'AES256' } }, 's3:PutObject'),
  ]);
  const post = async (fields: Record<string, string>, headers: Headers = {}) => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ key: 'form', ...fields })) form.append(name, value);
    form.append('file', new Blob(['x']));
    return (await fetch(`${world.endpoint}/${Bucket}`, { method: 'POST', body: form, headers })).status;
  };
  expect([await post({}), await post({}, { 'x-amz-server-side-encryption': 'AES256' })]).toEqual([403, 400]);
  await put([
    statement('Allow', undefined, 's3:PutObject*'),
    statement('Deny', { StringEquals: { 's3:x-amz-acl': 'public-read' } }, 's3:PutObject*'),
  ]);
  expect([await post({ acl: 'public-read' }), await post({})]).toEqual([403, 204]);
});

test('conditions on lists stand beside others', async () => {
  const listing = (Condition: Condition) => ({ ...statement('Allow', Condition, 's3:ListBucket'), Resource: arn() });
  await put(listing({ StringLike: { 's3:prefix': 'a/*' }, IpAddress: OFFICE, StringEquals: { 's3:delimiter': '/' } }));
  const list = (query: string, address: string) => get(via(address), `?${query}`);
  expect(await list('prefix=a/&delimiter=/', '192.0.2.1')).toBe(200);
  expect(await list('prefix=a/&delimiter=/', '198.51.100.1')).toBe(403);
  expect(await list('prefix=b/&delimiter=/', '192.0.2.1')).toBe(403);
  expect(await list('prefix=a/', '192.0.2.1')).toBe(403);
});

test('the API shows conditions and takes them, and a policy reads back as it was written', async () => {
  const Policy = JSON.stringify({ Statement: statement('Allow', { IpAddress: { 'aws:SourceIp': '192.0.2.1' } }) });
  await client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
  expect((await client.send(new s3.GetBucketPolicyCommand({ Bucket }))).Policy).toBe(Policy);
  const path = `/v2/buckets/${id}/policy`;
  const [shown] = (await world.service.call('GET', path)).body.statements;
  const conditions = [{ operator: 'IpAddress', key: 'aws:SourceIp', values: ['192.0.2.1'] }];
  expect(shown.conditions).toEqual(conditions);
  const again = await world.service.call('PUT', path, { body: { statements: [shown] } });
  expect(again.body.statements).toEqual([shown]);
  expect([await get(via('192.0.2.1')), await get(via('192.0.2.2'))]).toEqual([200, 403]);
  const written = JSON.parse((await client.send(new s3.GetBucketPolicyCommand({ Bucket }))).Policy ?? '');
  expect(written.Statement[0].Condition).toEqual({ IpAddress: { 'aws:SourceIp': ['192.0.2.1'] } });
  for (const wrong of [
    { ...conditions[0], key: 'aws:PrincipalOrgID' },
    { ...conditions[0], operator: 'IpAddresses' },
    { ...conditions[0], values: ['192.0.2.1/40'] },
    { operator: 'StringLike', key: 's3:prefix', values: ['a'] },
  ]) {
    const body = { statements: [{ ...shown, resources: ['*'], conditions: [wrong] }] };
    expect((await world.service.call('PUT', path, { body })).body.code).toBe('policy_invalid');
  }
  const twice = { statements: [{ ...shown, conditions: [...conditions, ...conditions] }] };
  expect((await world.service.call('PUT', path, { body: twice })).body.code).toBe('policy_invalid');
});
