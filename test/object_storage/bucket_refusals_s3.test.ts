// Values and documents that ask for what the S3 endpoint does not offer, and headers in the query of signed URLs.
import {
  presignedUrl,
  sendSigned,
  startSignedS3,
  type Call,
  type SignedWorld,
} from '../support/object_storage/s3_signed';

let world: SignedWorld;

beforeAll(async () => (world = await startSignedS3()), 120_000);
afterAll(() => world.close());

function send([method, path, own = {}]: Call, headers: Record<string, string> = {}, body = '') {
  const call: Call = [method, `/${world.bucketName}${path}`, { ...own, ...headers }];
  return sendSigned(world, call, body);
}

test('values that mean something else are refused', async () => {
  for (const [call, header, value] of [
    [['GET', '/a'], 'x-amz-checksum-mode', 'maybe'],
    [['PUT', '/c', { 'x-amz-copy-source': `${world.bucketName}/a` }], 'x-amz-metadata-directive', 'MERGE'],
    [['PUT', '/c', { 'x-amz-copy-source': `${world.bucketName}/a` }], 'x-amz-tagging', 'a=b'],
    [['PUT', '/c', { 'x-amz-copy-source': `${world.bucketName}/a` }], 'x-amz-checksum-algorithm', 'SHA256'],
    [['PUT', '/a'], 'x-amz-storage-class', 'GLACIER'],
    [['PUT', '/a'], 'x-amz-checksum-md5', 'AAAA'],
    [['PUT', '/a'], 'x-amz-trailer', 'x-amz-meta-color'],
    [['GET', '/a?attributes'], 'x-amz-object-attributes', 'ETag,Colour'],
    [['DELETE', '/a'], 'x-amz-if-match-size', 'large'],
    [['DELETE', '/a'], 'x-amz-if-match-last-modified-time', 'yesterday'],
  ] as [Call, string, string][]) {
    const chunked: Record<string, string> = header === 'x-amz-trailer' ? { 'x-amz-decoded-content-length': '0' } : {};
    const { status } = await send(call, { [header]: value, ...chunked });
    expect([header, status]).toEqual([header, status === 501 ? 501 : 400]);
  }
  const anonymous = await fetch(`${world.endpoint}/${world.bucketName}/a?response-content-type=text/html`);
  expect(anonymous.status).toBe(400);
});

/** A URL with headers in its query, as the SDKs sign it. */
const presigned = (method: string, key: string, more: Record<string, string>): string =>
  presignedUrl(world, [method, `/${world.bucketName}/${key}`], more);

test('headers in the query of a signed URL are headers', async () => {
  const put = async (more: Record<string, string>): Promise<number> =>
    (await fetch(presigned('PUT', 'hoisted', more), { method: 'PUT', body: 'x' })).status;
  const checksums = { 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-sdk-checksum-algorithm': 'CRC32' };
  expect(await put({ 'x-amz-meta-color': 'blue', 'x-id': 'PutObject', ...checksums })).toBe(200);
  const { headers } = await fetch(presigned('GET', 'hoisted', {}));
  expect(headers.get('x-amz-meta-color')).toBe('blue');
  expect(await put({ 'x-amz-expected-bucket-owner': '123456789012' })).toBe(403);
  expect(await put({ 'x-amz-server-side-encryption': 'aws:kms' })).toBe(501);
  expect(await put({ 'X-Amz-Security-Token': 'x' })).toBe(501);
});

const LIFECYCLE: Call = ['PUT', '?lifecycle'];
const member = (name: string, content: string): string => `<${name}>${content}</${name}>`;

test.each<[string, Call, string, string]>([
  [
    'a number of versions to keep',
    LIFECYCLE,
    rule(member('NoncurrentVersionExpiration', member('NoncurrentDays', '1') + member('NewerNoncurrentVersions', '5'))),
    'NotImplemented',
  ],
  ['a transition', LIFECYCLE, rule(member('Transition', member('Days', '1'))), 'NotImplemented'],
  ['a filter by tag', LIFECYCLE, rule(member('Filter', member('Tag', member('Key', 'a')))), 'NotImplemented'],
  ['a status that is none', LIFECYCLE, rule('', 'enabled'), 'MalformedXML'],
  ['a prefix in two places', LIFECYCLE, rule(member('Filter', '') + member('Prefix', 'a')), 'MalformedXML'],
  ['two statuses', LIFECYCLE, rule(member('Status', 'Disabled')), 'MalformedXML'],
  [
    'deletes with a second factor',
    ['PUT', '?versioning'],
    member('VersioningConfiguration', member('MfaDelete', 'Enabled') + member('Status', 'Enabled')),
    'NotImplemented',
  ],
  ['a header with a line feed', ['PUT', '?cors'], cors(member('ExposeHeader', 'a&#10;b')), 'InvalidRequest'],
  ['an age that is empty', ['PUT', '?cors'], cors(member('MaxAgeSeconds', '')), 'InvalidRequest'],
  ['an age with an exponent', ['PUT', '?cors'], cors(member('MaxAgeSeconds', '1e3')), 'InvalidRequest'],
  ['a name of a rule with a control character', ['PUT', '?cors'], cors(member('ID', '&#1;')), 'InvalidRequest'],
  ['an entity that is a member of every object', ['PUT', '?cors'], cors(member('ID', '&toString;')), 'MalformedXML'],
  [
    'a page with a control character',
    ['PUT', '?website'],
    member('WebsiteConfiguration', member('IndexDocument', member('Suffix', 'a&#127;b'))),
    'InvalidArgument',
  ],
  ...['\\u0000', '\\ud800'].map((text): [string, Call, string, string] => [
    `a policy with ${text}`,
    ['PUT', '?policy'],
    `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"${text}"}]}`,
    'MalformedPolicy',
  ]),
  ['a member of a rule that nobody knows', ['PUT', '?cors'], cors(member('Credentials', 'true')), 'NotImplemented'],
  [
    'a routing rule',
    ['PUT', '?website'],
    member('WebsiteConfiguration', member('IndexDocument', member('Suffix', 'i')) + member('RoutingRules', '')),
    'NotImplemented',
  ],
  [
    'a condition of a delete that nobody knows',
    ['POST', '?delete'],
    member('Delete', member('Object', member('Key', 'a') + member('Owner', 'me'))),
    'NotImplemented',
  ],
  [
    'tags of another kind',
    ['PUT', '/a?tagging'],
    member('Tagging', member('TagSet', member('Tag', member('Key', 'a') + member('Color', 'c')))),
    'NotImplemented',
  ],
])('%s is refused in a document', async (_, call, body, code) => {
  expect(await send(call, {}, body)).toMatchObject({ code });
});

function rule(more: string, status = 'Enabled'): string {
  const common = member('ID', 'a') + member('Status', status) + member('Expiration', member('Days', '1'));
  return member('LifecycleConfiguration', member('Rule', common + more));
}

function cors(more: string): string {
  const common = member('AllowedOrigin', '*') + member('AllowedMethod', 'GET');
  return member('CORSConfiguration', member('CORSRule', common + more));
}
