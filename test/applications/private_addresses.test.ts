// Wherever users name a host: an address that is not public is refused in any form, when it is set and when it
// changes.
import { isPrivateHost } from '../../core/protocols/addresses';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

let service: TestService;
let dns: DnsServer;

beforeAll(async () => {
  dns = await startDnsServer();
  const ports = { INGRESS_PORT: String(await freePort()), S3_PORT: String(await freePort()) };
  service = await startService({ worker: true, settings: { DNS_RESOLVERS: dns.address, ...ports } });
});
afterAll(async () => {
  await service?.close();
  await dns?.close();
});

/** As the host of a URL. */
const HOSTS = [
  ...['127.0.0.1', '127.1', '127.255.255.254', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001'],
  ...['0.0.0.0', '0', '10.0.0.1', '172.16.0.1', '192.168.1.2', '169.254.169.254', '100.64.0.1', '100.100.100.200'],
  ...['198.18.0.1', '192.0.0.192', '224.0.0.1', '240.0.0.1', '255.255.255.255', '127.0.0.1.'],
  ...[
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ],
  ...['[fe80::1]', '[fc00::1]', '[fd00:ec2::254]', '[ff02::1]', '[2001:db8::1]', '[0:0:0:0:0:ffff:a00:1]'],
  ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'a.localhost.', 'intranet', 'printer.local'],
  ...['metadata.google.internal', 'nas.home.arpa', '１２７.0.0.1', 'ⓛocalhost', '127。0。0。1'],
];
const PUBLIC = ['example.com', '8.8.8.8', '[2606:4700::1111]', 'internal.example.com', 'localhost.example.com', '1.1'];

test('the rule knows every form', () => {
  expect(HOSTS.filter((host) => !isPrivateHost(new URL(`http://${host}/`).hostname))).toEqual([]);
  expect(HOSTS.filter((host) => !isPrivateHost(host))).toEqual([]);
  expect(PUBLIC.filter((host) => isPrivateHost(host))).toEqual([]);
});

interface Place {
  path: string;
  field: string;
  /** With the host; unique names are put in. */
  body(host: string): Record<string, unknown>;
  /** What a change sends; null: the field does not change. */
  change(host: string): Record<string, unknown> | null;
}

const uptime = (target: string, check = 'http'): Record<string, unknown> => ({ uptime: { check, target } });
const PLACES: Record<string, Place> = {
  'an origin of a CDN zone': {
    path: '/v2/cdn_zones',
    field: 'origin.url',
    body: (host) => ({ origin: { type: 'url', url: `http://${host}:8080` } }),
    change: (host) => ({ origin: { type: 'url', url: `https://${host}` } }),
  },
  'a webhook of a notifier': {
    path: '/v2/notifiers',
    field: 'config.url',
    body: (host) => ({ type: 'webhook', config: { url: `https://${host}/hook` } }),
    change: (host) => ({ config: { url: `https://${host}/hook` } }),
  },
  'a channel of a notifier': {
    path: '/v2/notifiers',
    field: 'config.webhook_url',
    body: (host) => ({ type: 'slack', config: { webhook_url: `https://${host}/hook` } }),
    change: (host) => ({ config: { webhook_url: `https://${host}/hook` } }),
  },
  'a page that an observer checks': {
    path: '/v2/observers',
    field: 'uptime.target',
    body: (host) => ({ type: 'uptime', ...uptime(`http://${host}:9090/`) }),
    change: (host) => uptime(`http://${host}:9090/`),
  },
  'a port that an observer checks': {
    path: '/v2/observers',
    field: 'uptime.target',
    body: (host) => ({ type: 'uptime', ...uptime(`${host}:5432`, 'tcp') }),
    change: (host) => uptime(`${host}:5432`, 'tcp'),
  },
  'a repository': {
    path: '/v2/applications',
    field: 'source.repository_url',
    body: (host) => ({ source: { type: 'git', repository_url: `https://${host}/a.git` } }),
    change: (host) => ({ source: { type: 'git', repository_url: `https://${host}/a.git` } }),
  },
  'a Git provider': {
    path: '/v2/git_integrations',
    field: 'base_url',
    body: (host) => ({ provider: 'gitlab', base_url: `https://${host}`, access_token: 'good-token-1' }),
    change: () => null,
  },
};

const errorsOf = ({ status, body }: Answer): unknown[] => [
  status,
  body.errors?.map((one: { field: string }) => one.field),
];
let serial = 0;
const named = (body: object): object => ({ name: `place-${(serial += 1)}`, ...body });

describe.each(Object.entries(PLACES))('%s', (what, { path, field, body, change }) => {
  const hasName = what !== 'a Git provider';
  const full = (host: string): object => (hasName ? named(body(host)) : body(host));

  test('is refused when it is set', async () => {
    for (const host of HOSTS) {
      const answer = await service.call('POST', path, { body: full(host) });
      expect([host, ...errorsOf(answer)]).toEqual([host, 422, [field]]);
    }
  });

  if (change('example.com') !== null)
    test('is refused when it is changed', async () => {
      const made = await service.call('POST', path, { body: full('example.com') });
      expect(made.status).toBe(201);
      if (path === '/v2/cdn_zones') await service.settle(`${path}/${String(made.body.id)}`);
      for (const host of HOSTS) {
        const answer = await service.call('PATCH', `${path}/${String(made.body.id)}`, { body: change(host) });
        expect([host, ...errorsOf(answer)]).toEqual([host, 422, [field]]);
      }
    });
});

test('a registry of an image is refused in all forms that a reference can have, the own one is not', async () => {
  const application = (image: string): Promise<Answer> =>
    service.call('POST', '/v2/applications', { body: named({ source: { type: 'image', image } }) });
  const hosts = ['127.0.0.1:5000', 'localhost', 'localhost:5000', '10.0.0.1', '[::1]:5000', '169.254.169.254', '127.1'];
  for (const host of [...hosts, '0x7f.1', 'a.localhost:5000', 'registry.local', '100.64.0.1:443', 'intranet:5000']) {
    expect([host, ...errorsOf(await application(`${host}/shop/web:1`))]).toEqual([host, 422, ['source.image']]);
  }
  const own = service.platform.config.registryHost;
  for (const image of ['nginx', 'acme/shop', 'ghcr.io/acme/shop:1', `${String(own)}/shop/web`])
    expect([image, (await application(image)).status]).toEqual([image, 201]);
});

test('GraphQL refuses what REST refuses', async () => {
  const input = { name: 'place-graphql', origin: { type: 'url', url: 'http://127.0.0.1:5432' } };
  const { errors } = await service.graphql(
    'mutation ($input: CreateCdnZoneInput!) { createCdnZone(input: $input) { id } }',
    { input },
  );
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'validation_failed', errors: [{ field: 'origin.url' }] });
});

test('a CDN zone whose name leads to a private address is failed, and active when it does no more', async () => {
  dns.set('origin.example.org', 'A', ['169.254.169.254']);
  const made = await service.call('POST', '/v2/cdn_zones', {
    body: named({ origin: { type: 'url', url: 'http://origin.example.org' } }),
  });
  const path = `/v2/cdn_zones/${String(made.body.id)}`;
  const failed = await waitFor('the failure', async () => {
    const { body } = await service.call('GET', path);
    return body.status === 'failed' ? body : null;
  });
  expect(failed.status_reason).toContain('origin.example.org leads to an address that is not public');
  dns.set('origin.example.org', 'A', ['8.8.8.8']);
  const body = { origin: { type: 'url', url: 'http://origin.example.org' } };
  const changed = await service.call('PATCH', path, { body, headers: { Prefer: 'wait=20' } });
  expect([changed.status, changed.body.status]).toEqual([200, 'active']);
});
