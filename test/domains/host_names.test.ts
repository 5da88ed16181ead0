// Host names in the fields of all groups: a trailing dot, letters beyond ASCII, and what is no name. One rule
// (core/protocols/domain_names.ts), so that what one group takes, the others take too.
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';

type Body = Answer['body'];
interface Field {
  field: string;
  /** Sends a name. @returns the answer, and what became of it */
  send(name: string): Promise<{ answer: Answer; value: unknown }>;
}

let service: TestService;
let zone: Body;
let cdn: Body;
let application: Body;

beforeAll(async () => {
  service = await startService({
    settings: { DNS_PORT: String(await freePort()), QUOTAS: '{"dns_zones": 1000}' },
  });
  zone = await made('/v2/dns_zones', { name: 'names.example.com' });
  cdn = await made('/v2/cdn_zones', { name: 'names', origin: { type: 'url', url: 'https://origin.example.com' } });
  application = await made('/v2/applications', {
    name: 'names',
    source: { type: 'git', repository_url: 'https://git.example.com/a.git' },
  });
});
afterAll(() => service?.close());

async function made(path: string, body: object): Promise<Body> {
  const answer = await service.call('POST', path, { body });
  expect([path, answer.status, answer.text]).toEqual([path, 201, expect.anything()]);
  return answer.body;
}

const sending = (path: () => string, more: object, field: string): Field => ({
  field,
  async send(name) {
    const answer = await service.call('POST', path(), { body: { ...more, [field]: name } });
    return { answer, value: answer.body[field] };
  },
});

const FIELDS: Record<string, Field> = {
  'DNS zone': sending(() => '/v2/dns_zones', {}, 'name'),
  'DNS record, CNAME': sending(() => `/v2/dns_zones/${zone.id}/records`, { type: 'CNAME', name: 'a' }, 'value'),
  'DNS record, NS': sending(() => `/v2/dns_zones/${zone.id}/records`, { type: 'NS', name: 'b' }, 'value'),
  'custom domain': sending(() => `/v2/applications/${application.id}/domains`, {}, 'hostname'),
  'CDN domain': {
    field: 'hostname',
    // Custom domains have had the names themselves.
    async send(name) {
      const path = `/v2/cdn_zones/${cdn.id}/domains`;
      const body = { hostname: name.replace('example.org', 'cdn.example.org') };
      const answer = await service.call('POST', path, { body });
      return { answer, value: answer.body.hostname?.replace('cdn.example.org', 'example.org') };
    },
  },
  'CDN origin, Host header': {
    field: 'origin.host_header',
    async send(host_header) {
      const origin = { type: 'url', url: 'https://origin.example.com', host_header };
      const answer = await service.call('PATCH', `/v2/cdn_zones/${cdn.id}`, { body: { origin } });
      return { answer, value: answer.body.origin?.host_header };
    },
  },
  'email domain': sending(() => '/v2/email_domains', {}, 'name'),
};

describe.each(Object.entries(FIELDS))('%s', (_, { field, send }) => {
  test.each([
    ['a trailing dot', 'Dot.example.org.', 'dot.example.org'],
    ['letters beyond ASCII', 'bücher.example.org', 'xn--bcher-kva.example.org'],
    ['an ß, which stays one', 'straße.example.org', 'xn--strae-oqa.example.org'],
  ])('takes %s', async (__, name, normal) => {
    const { answer, value } = await send(name);
    expect([answer.status < 300, value, answer.text]).toEqual([true, normal, expect.anything()]);
    // So that the next name has room.
    const location = answer.headers.get('location');
    if (location) await service.call('DELETE', new URL(location).pathname);
  });

  test.each([
    ['emoji', '😀.example.org', 'emoji'],
    ['mixed directions', 'אab.example.org', 'right-to-left'],
    ['two trailing dots', 'dots.example.org..', ''],
    ['an address', '192.0.2.1', ''],
  ])('refuses %s', async (__, name, words) => {
    const { answer } = await send(name);
    const [mistake] = answer.body.errors ?? answer.body.record_errors ?? [];
    expect([answer.status, mistake?.field]).toEqual([422, field]);
    expect(mistake.detail).toContain(words);
    expect(mistake.detail).not.toContain('wildcard');
  });
});

test.each([
  ['bücher', 'xn--bcher-kva'],
  ['*.Bücher', '*.xn--bcher-kva'],
  ['_x.bücher.names.example.com.', '_x.xn--bcher-kva'],
])('the name %s of a record becomes %s', async (name, normal) => {
  const record = await made(`/v2/dns_zones/${zone.id}/records`, { type: 'A', name, value: '192.0.2.1' });
  expect(record).toMatchObject({ name: normal, fqdn: `${normal}.names.example.com` });
});

test.each([
  ['an emoji as its name', { type: 'A', name: '😀', value: '192.0.2.1' }, 'name'],
  ['itself as the target of a CNAME', { type: 'CNAME', name: 'me', value: 'me.names.example.com.' }, 'value'],
  ['an IPv6 address as a target', { type: 'MX', name: 'mx', value: '2001:db8::1', priority: 1 }, 'value'],
])('a record with %s is refused', async (_, body, field) => {
  const answer = await service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body });
  expect([answer.status, answer.body.record_errors?.[0]?.field]).toEqual([422, field]);
});
