// Names of the platform itself: no tenant gets one of them, and none that would take its visitors.
import { startService, type TestService } from '../support/service';

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
