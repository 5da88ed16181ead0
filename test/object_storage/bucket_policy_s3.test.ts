// Policies in the language of AWS: what they grant, what of them is refused, and that they read back as written.
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';
import { retryCheck } from '../support/wait_for';

let world: S3Service;
let client: s3.S3Client;
let Bucket: string;
let bucketId: string;
let arn: string;

beforeAll(async () => {
  world = await startS3();
  client = world.client(undefined, { maxAttempts: 1 });
}, 120_000);
beforeEach(async () => {
  ({ name: Bucket, id: bucketId } = await world.bucket());
  arn = `arn:aws:s3:::${Bucket}`;
  for (const Key of ['public/a', 'secret']) await client.send(new s3.PutObjectCommand({ Bucket, Key, Body: Key }));
});
afterAll(() => world.close());

const put = (policy: object | string): Promise<unknown> =>
  client.send(
    new s3.PutBucketPolicyCommand({ Bucket, Policy: typeof policy === 'string' ? policy : JSON.stringify(policy) }),
  );
const allow = (Action: string | string[], Resource: string | string[], more: object = {}): object => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: '*', Action, Resource, ...more }],
});
const anybody = async (path: string, method = 'GET'): Promise<number> =>
  (await fetch(`${world.endpoint}/${Bucket}${path}`, { method, ...(method === 'PUT' && { body: 'x' }) })).status;
const statementsOfApi = async (): Promise<{ resources: string[]; actions: string[] }[]> =>
  (await world.service.call('GET', `/v2/buckets/${bucketId}/policy`)).body.statements;

test('the ARN of a bucket is for actions on the bucket, and that of objects for theirs', async () => {
  await put(allow(['s3:ListBucket', 's3:GetObject'], [arn, `${arn}/public/*`]));
  expect([await anybody('/'), await anybody('/public/a'), await anybody('/secret')]).toEqual([200, 200, 403]);
  await put(allow('s3:PutObject', arn));
  expect([await anybody('/new', 'PUT'), await anybody('/public/a')]).toEqual([403, 403]);
  await put(allow('s3:*', `${arn}/*`));
  expect([await anybody('/secret'), await anybody('/'), await anybody('/?policy'), await anybody('/?cors')]).toEqual([
    ...[200, 403, 403, 403],
  ]);
  expect([await anybody('/?policy', 'DELETE'), await anybody('/?acl', 'PUT')]).toEqual([403, 403]);
  await put(allow('s3:*', arn));
  expect([await anybody('/'), await anybody('/secret')]).toEqual([200, 403]);
});

test.each(['arn::s3:::', 'arn:aws-cn:s3:::'])('%s is the same ARN, and is read as it was written', async (start) => {
  const written = allow(['s3:ListBucket', 's3:GetObject'], [start + Bucket, `${start}${Bucket}/public/*`]);
  await put(written);
  expect([await anybody('/'), await anybody('/public/a'), await anybody('/secret')]).toEqual([200, 200, 403]);
  expect((await statementsOfApi())[0]?.resources).toEqual([arn, `${arn}/public/*`]);
  const { Policy = '' } = await client.send(new s3.GetBucketPolicyCommand({ Bucket }));
  expect(JSON.parse(Policy)).toEqual(written);
  expect(await codeOf(put(allow('s3:GetObject', `${start}other/*`)))).toBe('MalformedPolicy');
});

test('wildcards, cases and several statements are those of AWS', async () => {
  await put(allow('S3:getobject', `${arn}/p?blic/*`));
  expect([await anybody('/public/a'), await anybody('/secret')]).toEqual([200, 403]);
  await put(allow('s3:GetObject', `${arn}/PUBLIC/*`));
  expect(await anybody('/public/a')).toBe(403);
  await put(allow('s3:GetObject', 'arn:aws:s3:::*/secret'));
  expect([await anybody('/public/a'), await anybody('/secret')]).toEqual([403, 200]);
  const deny = { Effect: 'Deny', Principal: { AWS: ['*'] }, Action: 's3:Get*', Resource: [`${arn}/sec*`] };
  await put({ Statement: [deny, { ...deny, Effect: 'Allow', Action: '*', Resource: [arn, `${arn}/*`] }] });
  expect([await anybody('/public/a'), await anybody('/secret'), await anybody('/')]).toEqual([200, 403, 200]);
  expect(await codeOf(client.send(new s3.GetObjectCommand({ Bucket, Key: 'secret' })))).toBe('AccessDenied');
});

test('a policy reads back as it was written, at once, over S3 and over the API', async () => {
  const written = JSON.stringify(
    { Id: 'site', Version: '2012-10-17', Statement: { ...statementOf('s3:GetObject', `${arn}/a/*`), Sid: 'one' } },
    null,
    2,
  );
  await put(written);
  const read = async () => (await client.send(new s3.GetBucketPolicyCommand({ Bucket }))).Policy;
  expect(await read()).toBe(written);
  expect(await statementsOfApi()).toEqual([
    {
      ...{ id: 'one', effect: 'allow', principals: ['*'] },
      ...{ actions: ['s3:GetObject'], resources: [`${arn}/a/*`], conditions: [] },
    },
  ]);
  const path = `/v2/buckets/${bucketId}/policy`;
  const [statement] = await statementsOfApi();
  const mine = { ...statement, resources: [arn, 'b/*'], actions: ['s3:GetObject', 's3:ListBucketVersions'] };
  expect((await world.service.call('PUT', path, { body: { statements: [mine] } })).body.statements).toEqual([mine]);
  const shown = (await read()) as string;
  expect(JSON.parse(shown).Statement[0]).toMatchObject({ Resource: [arn, `${arn}/b/*`], Action: mine.actions });
  await put(shown);
  expect(await read()).toBe(shown);
  const status = async () => client.send(new s3.GetBucketPolicyStatusCommand({ Bucket }));
  expect((await status()).PolicyStatus?.IsPublic).toBe(true);
  await client.send(new s3.DeleteBucketPolicyCommand({ Bucket }));
  expect(await codeOf(read())).toBe('NoSuchBucketPolicy');
});

test('patterns of keys that the API has set are read over S3 as they are, and can be written so', async () => {
  const statement = { effect: 'allow', principals: ['*'], actions: ['s3:GetObject', 's3:ListBucket'] };
  const body = { statements: [{ ...statement, resources: ['public/*'] }] };
  await world.service.call('PUT', `/v2/buckets/${bucketId}/policy`, { body });
  const rights = async (): Promise<number[]> =>
    Promise.all(['/?prefix=public/', '/?prefix=s', '/', '/public/a', '/secret'].map((path) => anybody(path)));
  await retryCheck(async () => expect(await rights()).toEqual([200, 403, 403, 200, 403]));
  const { Policy = '' } = await client.send(new s3.GetBucketPolicyCommand({ Bucket }));
  await put(allow('s3:DeleteObject', `${arn}/none`));
  expect(await rights()).toEqual([403, 403, 403, 403, 403]);
  await put(Policy);
  expect(await rights()).toEqual([200, 403, 403, 200, 403]);
});

const statementOf = (Action: unknown, Resource: unknown): object => ({
  ...{ Effect: 'Allow', Principal: '*', Action, Resource },
});

describe('what a policy cannot say here is refused and changes nothing', () => {
  const condition = (Condition: object): object => allow('s3:GetObject', '$ARN/*', { Condition });
  const without = (name: string): object => {
    const statement = { ...statementOf('s3:GetObject', '$ARN/*') } as Record<string, unknown>;
    delete statement[name];
    return { Statement: [statement] };
  };
  const principal = (Principal: unknown): object => allow('s3:GetObject', '$ARN/*', { Principal });

  test.each<[string, object | string, string]>([
    ['NotAction', { Statement: [{ ...without('Action'), NotAction: 's3:PutObject' }] }, 'NotImplemented'],
    ['NotResource', allow('s3:GetObject', '$ARN/*', { NotResource: '$ARN/secret' }), 'NotImplemented'],
    ['NotPrincipal', allow('s3:GetObject', '$ARN/*', { NotPrincipal: { AWS: 'x' } }), 'NotImplemented'],
    ['a key that nobody evaluates', condition({ StringEquals: { 'aws:PrincipalOrgID': 'o-1' } }), 'NotImplemented'],
    [
      'a key beside one that is evaluated',
      condition({ Bool: { 'aws:SecureTransport': true, 's3:x': true } }),
      'NotImplemented',
    ],
    ['an operator of sets', condition({ 'ForAnyValue:StringLike': { 'aws:Referer': 'x' } }), 'NotImplemented'],
    ['an operator in another case', condition({ stringlike: { 'aws:Referer': 'x' } }), 'NotImplemented'],
    ['an operator of another type', condition({ StringLike: { 'aws:SourceIp': '192.0.2.*' } }), 'NotImplemented'],
    ['an address that is none', condition({ IpAddress: { 'aws:SourceIp': '192.0.2.0/33' } }), 'NotImplemented'],
    ['an IPv4 address as IPv6', condition({ IpAddress: { 'aws:SourceIp': '::ffff:192.0.2.1/128' } }), 'NotImplemented'],
    ['a truth that is none', condition({ Bool: { 'aws:SecureTransport': 'yes' } }), 'NotImplemented'],
    ['a variable in a condition', condition({ StringLike: { 'aws:Referer': '${aws:username}' } }), 'NotImplemented'],
    ['a condition without a value', condition({ StringLike: { 'aws:Referer': [] } }), 'MalformedPolicy'],
    ['a condition that is a list', condition([{ StringLike: { 'aws:Referer': 'x' } }]), 'MalformedPolicy'],
    ['an operator that nobody knows', condition({ StringSounds: { 's3:prefix': 'a' } }), 'NotImplemented'],
    ['a condition on a prefix of what is no list', condition({ StringLike: { 's3:prefix': 'a' } }), 'NotImplemented'],
    ['a variable', allow('s3:GetObject', '$ARN/${aws:username}/*'), 'MalformedPolicy'],
    ['a member that nobody knows', { ...allow('s3:GetObject', '$ARN/*'), Statements: [] }, 'NotImplemented'],
    ['another bucket', allow('s3:GetObject', 'arn:aws:s3:::other-bucket/*'), 'MalformedPolicy'],
    ['a bucket whose name begins alike', allow('s3:GetObject', '$ARN-2/*'), 'MalformedPolicy'],
    ['another service', allow('s3:GetObject', 'arn:aws:sqs:::queue'), 'MalformedPolicy'],
    ['no ARN', allow('s3:GetObject', '*'), 'MalformedPolicy'],
    ['an unknown action', allow('s3:Fly', '$ARN/*'), 'MalformedPolicy'],
    ['an action of another service', allow('iam:*', '$ARN/*'), 'MalformedPolicy'],
    ['a version', { ...allow('s3:GetObject', '$ARN/*'), Version: '2020-01-01' }, 'MalformedPolicy'],
    ['an effect', allow('s3:GetObject', '$ARN/*', { Effect: 'allow' }), 'MalformedPolicy'],
    ['no Effect', without('Effect'), 'MalformedPolicy'],
    ['no Principal', without('Principal'), 'MalformedPolicy'],
    ['no Action', without('Action'), 'MalformedPolicy'],
    ['no Resource', without('Resource'), 'MalformedPolicy'],
    ['an account', principal({ AWS: 'arn:aws:iam::123456789012:root' }), 'MalformedPolicy'],
    ['a canonical user', principal({ CanonicalUser: '79a5' }), 'NotImplemented'],
    ['a canonical user beside others', principal({ AWS: '*', CanonicalUser: '79a5' }), 'NotImplemented'],
    ['a service', principal({ Service: 'cloudfront.amazonaws.com' }), 'NotImplemented'],
    ['a number as Sid', allow('s3:GetObject', '$ARN/*', { Sid: 7 }), 'MalformedPolicy'],
    ['no statement', { Statement: [] }, 'MalformedPolicy'],
    ['no JSON', '<Policy/>', 'MalformedPolicy'],
    ['a deny that denies nothing', allow('s3:GetObject', '$ARN', { Effect: 'Deny' }), 'MalformedPolicy'],
    [
      'a deny of a list at objects',
      allow(['s3:GetObject', 's3:ListBucket'], '$ARN/*', { Effect: 'Deny' }),
      'MalformedPolicy',
    ],
  ])('%s', async (_, policy, code) => {
    const text = (typeof policy === 'string' ? policy : JSON.stringify(policy)).replaceAll('$ARN', arn);
    expect(await codeOf(put(text))).toBe(code);
    expect(await codeOf(client.send(new s3.GetBucketPolicyCommand({ Bucket })))).toBe('NoSuchBucketPolicy');
    expect(await anybody('/secret')).toBe(403);
  });

  test('over the API too', async () => {
    const put = async (resources: string[], more: object = {}): Promise<string> => {
      const statement = { effect: 'allow', principals: ['*'], actions: ['s3:GetObject'], resources, ...more };
      const answer = await world.service.call('PUT', `/v2/buckets/${bucketId}/policy`, {
        body: { statements: [statement] },
      });
      return answer.status === 200 ? 'done' : answer.body.code;
    };
    expect(await put([arn, `${arn}/*`, 'a/*'])).toBe('done');
    for (const wrong of ['arn:aws:s3:::other/*', `${arn}2`, 'arn:aws:iam:::user/x', `${arn}/\${aws:userid}`])
      expect(await put([wrong])).toBe('policy_invalid');
    expect(await put([arn], { effect: 'deny' })).toBe('policy_invalid');
  });
});

test('without a trusted proxy, its headers are believed by no condition', async () => {
  const headers = { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https', forwarded: 'for=192.0.2.1' };
  const ask = async () => (await fetch(`${world.endpoint}/${Bucket}/secret`, { headers })).status;
  const only = (Condition: object) => put(allow('s3:GetObject', `${arn}/*`, { Condition }));
  await only({ IpAddress: { 'aws:SourceIp': '192.0.2.0/24' } });
  expect(await ask()).toBe(403);
  await only({ NotIpAddress: { 'aws:SourceIp': '127.0.0.0/8' } });
  expect(await ask()).toBe(403);
  await only({ Bool: { 'aws:SecureTransport': 'true' } });
  expect(await ask()).toBe(403);
  await only({ IpAddress: { 'aws:SourceIp': '127.0.0.1' } });
  expect(await ask()).toBe(200);
});

test('a condition on the prefix of lists is kept to', async () => {
  const list = (operator: string, values: string | string[], effect = 'Allow'): object =>
    allow('s3:ListBucket', arn, { Effect: effect, Condition: { [operator]: { 's3:prefix': values } } });
  const lists = async (): Promise<number[]> =>
    Promise.all(['/', '/?prefix=public/', '/?prefix=public/a', '/?prefix=s'].map((path) => anybody(path)));
  await put(list('StringLike', 'public/*'));
  expect(await lists()).toEqual([403, 200, 200, 403]);
  await put(list('StringEquals', ['', 'public/']));
  expect(await lists()).toEqual([200, 200, 403, 403]);
  await put(list('StringEquals', 'public/*'));
  expect([...(await lists()), await anybody('/?prefix=public/*')]).toEqual([403, 403, 403, 403, 200]);
});
