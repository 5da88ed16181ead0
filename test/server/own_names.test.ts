// API, S3 and registry by the names of the platform, through its own ingress.
import { fileNeeds } from '../support/runner/programs';
import { API, openOwnNames, REGISTRY, S3, type OwnNames } from '../support/ingress/own_names';

fileNeeds('openssl');

let names: OwnNames;

beforeAll(async () => {
  names = await openOwnNames();
}, 120_000);
afterAll(() => names.close());

const authorised = (): Record<string, string> => ({
  authorization: `Bearer ${names.first().key}`,
  'x-svc-project': names.first().project_id,
});

test('the API answers by its name', async () => {
  const { status, body, headers } = await names.ask({ path: '/v2/me', headers: authorised() });
  expect([status, JSON.parse(body)]).toEqual([200, expect.objectContaining({ email: 'owner@example.com' })]);
  expect(headers['strict-transport-security']).toBe('max-age=31536000');
});

test('so do the S3 endpoint and the registry', async () => {
  const s3 = await names.ask({ host: S3, path: '/' });
  expect([s3.status, s3.body]).toEqual([403, expect.stringContaining('<Code>AccessDenied</Code>')]);
  const registry = await names.ask({ host: REGISTRY, path: '/v2/' });
  expect(registry.status).toBe(401);
  expect(registry.headers['www-authenticate']).toContain(`realm="https://${REGISTRY}:${names.ports.https}/token"`);
});

test('a restart loses no request', async () => {
  const before = names.program().pid;
  const stopping = names.stop();
  const asked = names.ask({ path: '/v2/me', headers: authorised() });
  await stopping;
  const waiting = names.ask({
    path: '/v2/volumes',
    method: 'POST',
    headers: { ...authorised(), 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'data', size_gb: 1 }),
  });
  await names.start();
  expect(names.program().pid).not.toBe(before);
  expect([(await asked).status, (await waiting).status]).toEqual([200, 201]);
  expect(API).toBe('platform.example.com');
}, 60_000);
