// Names of the platform itself: no tenant gets one of them, and none that would take its visitors.
import { loadConfig } from '../../core/config';
import { platformNames } from '../../core/platform_names';
import { startService, type TestService } from '../support/service';

const TLS = { INGRESS_TLS_PORT: '8443' };

const namesOf = (env: Record<string, string>): string[] =>
  platformNames(loadConfig(env)).map(({ hostname, service }) => `${service} ${hostname}`);

test('the ingress serves the names of the platform that lead to its port with TLS', () => {
  const env = {
    ...TLS,
    BASE_URL: 'https://platform.example.com',
    S3_URL: 'https://S3.example.com:8443/',
    REGISTRY_HOST: 'registry.example.com',
  };
  expect(namesOf(env)).toEqual(['api platform.example.com', 's3 s3.example.com', 'registry registry.example.com']);
});

test('an international name is served in its ASCII form', () => {
  expect(namesOf({ ...TLS, BASE_URL: 'https://bücher.example.com' })).toEqual(['api xn--bcher-kva.example.com']);
});

test.each([
  ['without TLS', { BASE_URL: 'https://platform.example.com', INGRESS_TLS_PORT: '' }],
  ['over plain HTTP', { BASE_URL: 'http://platform.example.com' }],
  ['of an address', { BASE_URL: 'https://192.0.2.1' }],
  ['of an IPv6 address', { BASE_URL: 'https://[2001:db8::1]' }],
  ['of this machine', { BASE_URL: 'https://localhost' }],
  ['below localhost', { BASE_URL: 'https://platform.localhost' }],
  ['of one label', { BASE_URL: 'https://platform' }],
  ['at another port', { BASE_URL: 'https://platform.example.com:9443' }],
  ['below a path', { BASE_URL: 'https://example.com/platform' }],
  ['of a registry that has a certificate itself', { REGISTRY_HOST: 'r.example.com', REGISTRY_CERT_FILE: '/cert.pem' }],
  ['of a registry elsewhere', { DISTRIBUTION_URL: 'https://distribution.example.com' }],
  ['of a registry that is off', { REGISTRY_HOST: 'registry.example.com', REGISTRY_PORT: '0' }],
  ['of object storage that is off', { S3_URL: 'https://s3.example.com', S3_PORT: '0' }],
  ['of an object gateway', { S3_URL: 'https://s3.example.com', RGW_URL: 'http://127.0.0.1:7480' }],
])('it does not serve a name %s', (_, env) => {
  expect(namesOf({ ...TLS, ...env })).toEqual([]);
});

test('a name belongs to one service, the API before the others', () => {
  const env = { ...TLS, BASE_URL: 'https://example.com', S3_URL: 'https://example.com:8443' };
  expect(namesOf(env)).toEqual(['api example.com']);
});

let service: TestService;
let paths: Record<string, { path: string; field: string }>;

beforeAll(async () => {
  const names = {
    S3_URL: 'https://objects.example.com',
    REGISTRY_HOST: 'images.example.com',
    S3_DOMAIN: 's3.example.org',
  };
  service = await startService({ settings: { BASE_URL: 'https://console.example.com', ...names } });
  const made = async (path: string, body: object): Promise<string> => {
    const answer = await service.call('POST', path, { body });
    expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
    return answer.body.id as string;
  };
  const source = { type: 'git', repository_url: 'https://git.example.com/a.git' };
  const application = await made('/v2/applications', { name: 'names', source });
  const origin = { type: 'url', url: 'https://origin.example.com' };
  const zone = await made('/v2/cdn_zones', { name: 'names', origin });
  paths = {
    domain: { path: `/v2/applications/${application}/domains`, field: 'hostname' },
    'CDN domain': { path: `/v2/cdn_zones/${zone}/domains`, field: 'hostname' },
    'DNS zone': { path: '/v2/dns_zones', field: 'name' },
  };
});
afterAll(() => service?.close());

const NAMES = ['console.example.com', 'objects.example.com', 'images.example.com', 'Images.Example.com.'];

describe.each(['domain', 'CDN domain', 'DNS zone'])('a %s', (kind) => {
  const send = (name: string) => {
    const { path, field } = paths[kind] as { path: string; field: string };
    return service.call('POST', path, { body: { [field]: name } });
  };

  test.each([...NAMES, 'a.images.example.com'])('is not %s', async (name) => {
    const { status, body } = await send(name);
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    expect(body.errors).toEqual([
      expect.objectContaining({ code: 'invalid_format', detail: 'belongs to the platform' }),
    ]);
  });

  test('may be a neighbour', async () => {
    expect((await send(`${kind.replace(' ', '-').toLowerCase()}.example.com`)).status).toBe(201);
  });
});

test.each(['*.example.com', '*.console.example.com', 'bucket.s3.example.org'])('a domain is not %s', async (name) => {
  const { path } = paths.domain as { path: string };
  const { status, body } = await service.call('POST', path, { body: { hostname: name } });
  expect([status, body.code]).toEqual([422, 'validation_failed']);
});
