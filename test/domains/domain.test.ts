import { mintId } from '../../core/ids';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { domainsOf, domainsPath, INGRESS, instruction, IPV4, IPV6, type Domains } from '../support/dns/domains';
import { startService, type TestService } from '../support/service';

let dns: DnsServer;
let service: TestService;
let domains: Domains;
let application: string;

beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({
    settings: { ...INGRESS, INGRESS_IPS: `${IPV4},${IPV6}`, DNS_RESOLVERS: dns.address },
  });
  domains = domainsOf(service, dns);
  application = await domains.newApplication('shop');
});

afterAll(async () => {
  await service?.close();
  await dns?.close();
});

describe('add', () => {
  test('answers the domain with the records to create', async () => {
    const domain = await domains.added('www.added.example', application);
    expect(domain).toMatchObject({
      project_id: service.project,
      application_id: application,
      hostname: 'www.added.example',
      type: 'subdomain',
      status: 'pending',
      status_reason: null,
      certificate: { status: 'none', issuer: null, expires_at: null, error: null },
      last_checked_at: null,
      verified_at: null,
    });
    expect(domain.id).toMatch(/^dom_[0-9a-hjkmnp-tv-z]{26}$/);
    expect(domain.dns_instructions).toEqual([
      {
        purpose: 'routing',
        type: 'CNAME',
        name: 'www.added.example',
        value: 'ingress.example.net',
        priority: null,
        status: 'pending',
        observed_values: [],
      },
      {
        purpose: 'ownership',
        type: 'TXT',
        name: '_platform-verification.www.added.example',
        value: expect.stringMatching(/^[0-9a-f]{32}$/),
        priority: null,
        status: 'pending',
        observed_values: [],
      },
    ]);
    expect(Object.keys(domain).sort()).toEqual([
      'application_id',
      'certificate',
      'created_at',
      'dns',
      'dns_instructions',
      'hostname',
      'id',
      'last_checked_at',
      'project_id',
      'status',
      'status_reason',
      'type',
      'updated_at',
      'verified_at',
    ]);
    expect(await domains.find('www.added.example', application)).toEqual(domain);
  });

  test.each([
    ['folded.example', 'FOLDED.Example', 'apex'],
    ['xn--bcher-kva.example', 'bücher.example', 'apex'],
    ['shop.co.uk', 'shop.co.uk', 'apex'],
    ['www.shop.co.uk', 'www.shop.co.uk', 'subdomain'],
    ['shop.uk.com', 'shop.uk.com', 'apex'],
    ['*.wild.example', '*.WILD.example', 'wildcard'],
    ['trailing.example', 'trailing.example.', 'apex'],
    ['a.b.c.deep.example', 'a.b.c.deep.example', 'subdomain'],
  ])('%s', async (hostname, sent, type) => {
    expect(await domains.added(sent, application)).toMatchObject({ hostname, type });
    expect((await domains.find(hostname.toUpperCase(), application))?.type).toBe(type);
  });

  test.each([
    'localhost',
    'two.dots.example..',
    'two..example',
    '-a.example',
    'a_b.example',
    '192.0.2.1',
    'a.*.example',
    '*.com',
    'co.uk',
    '*.co.uk',
    'http://a.example',
    'a b.example',
    'ａ'.repeat(64) + '.example',
    'apps.example.net',
    'shop.apps.example.net',
    '*.apps.example.net',
    '*.example.net',
    'ingress.example.net',
    '',
  ])('refuses %j', async (hostname) => {
    const { status, body } = await domains.add(hostname, application);
    expect([
      status,
      body.code,
      body.errors?.map((error: { field: string; code: string }) => [error.field, error.code]),
    ]).toEqual([422, 'validation_failed', [['hostname', 'invalid_format']]]);
  });

  test('refuses a name that leaves no room for the ownership record, and fields that are not its own', async () => {
    const long = `${Array(5).fill('a'.repeat(45)).join('.')}.example`;
    const codes = async (body: object) =>
      (await service.call('POST', domainsPath(application), { body })).body.errors.map(
        (error: { field: string; code: string }) => `${error.field} ${error.code}`,
      );
    expect(await codes({ hostname: long })).toEqual(['hostname too_long']);
    expect(await codes({})).toEqual(['hostname required']);
    expect(await codes({ hostname: null, status: 'active', foo: 1 })).toEqual(
      expect.arrayContaining(['hostname required', 'status immutable', 'foo unknown_field']),
    );
  });

  test('needs an application of the project', async () => {
    const other = await service.newProject({ stranger: true });
    const foreign = await domains.newApplication('foreign', { key: other.key, project: other.id });
    for (const id of [foreign, mintId('app'), 'nonsense'])
      expect((await domains.add('www.nobody.example', id)).body.code).toBe('not_found');
    expect((await service.call('GET', domainsPath(foreign))).status).toBe(404);
  });
});

describe('a host name belongs to whoever proves it first', () => {
  async function rival(name: string): Promise<{ key: string; project: string; application: string }> {
    const { id, key } = await service.newProject({ stranger: true });
    return { key, project: id, application: await domains.newApplication(name, { key, project: id }) };
  }

  test('a claim without proof blocks its own project and nobody else', async () => {
    const other = await rival('claimant');
    await domains.added('www.claimed.example', application);
    expect((await domains.add('www.claimed.example', application)).body.code).toBe('domain_taken');
    const { status, body } = await domains.add('www.claimed.example', other.application, other);
    expect([status, body.status]).toEqual([201, 'pending']);
  });

  test('a proven one blocks everybody, also while it is being torn down', async () => {
    const other = await rival('taker');
    const take = (hostname: string) => domains.add(hostname, other.application, other);
    const domain = await domains.added('www.taken.example', application);
    domain.dns_instructions.forEach(domains.obey);
    expect((await domains.verified(domain)).status).toBe('active');
    expect((await take('WWW.taken.example')).body).toMatchObject({ status: 409, code: 'domain_taken' });
    expect((await service.call('DELETE', domainsPath(application, domain.id))).status).toBe(204);
    expect((await take('www.taken.example')).body.code).toBe('domain_taken');
    expect((await take('taken.example')).status).toBe(201);
  });

  test('the second of two claims that proves it waits, and has it when the first is gone', async () => {
    const other = await rival('second');
    const first = await domains.added('www.both.example', application);
    const second = (await domains.add('www.both.example', other.application, other)).body;
    first.dns_instructions.forEach(domains.obey);
    const tokens = [first, second].map((domain) => instruction(domain, 'ownership').value);
    dns.set(instruction(first, 'ownership').name, 'TXT', tokens);
    expect((await domains.verified(first)).status).toBe('active');
    const path = `${domainsPath(other.application, second.id)}/verify`;
    const waiting = (await service.call('POST', path, other)).body;
    expect(waiting).toMatchObject({ status: 'pending', status_reason: expect.stringContaining('Another project') });
    await service.sql('delete from domains where id = $1', [first.id]);
    expect((await service.call('POST', path, other)).body).toMatchObject({ status: 'active', status_reason: null });
  });

  test('of two that prove it at once one has it', async () => {
    const other = await rival('racer');
    const first = await domains.added('www.duel.example', application);
    const second = (await domains.add('www.duel.example', other.application, other)).body;
    first.dns_instructions.forEach(domains.obey);
    const tokens = [first, second].map((domain) => instruction(domain, 'ownership').value);
    dns.set(instruction(first, 'ownership').name, 'TXT', tokens);
    const answers = await Promise.all([
      domains.verify(first),
      service.call('POST', `${domainsPath(other.application, second.id)}/verify`, other),
    ]);
    const seen = answers.map(({ status, body }) => body.code ?? `${status} ${body.status}`).sort();
    expect(['200 active', '200 pending']).toContain(seen[0]);
    expect(['200 pending', 'domain_taken']).toContain(seen.find((one) => one !== '200 active'));
    const [row] = await service.sql<{ active: number }>(
      `select count(*)::int as active from domains where hostname = 'www.duel.example' and status = 'active'`,
    );
    expect(row?.active).toBe(1);
  });

  test('of many adds at once one wins', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => domains.add('www.race.example', application)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)]);
  });
});

describe('move', () => {
  test('keeps status and records', async () => {
    const target = await domains.newApplication('move-target');
    const domain = await domains.added('www.moved.example', application);
    domains.obey(instruction(domain, 'routing'));
    domains.obey(instruction(domain, 'ownership'));
    const active = await domains.verified(domain);
    const { status, body } = await domains.move(domain, { application_id: target });
    expect(status).toBe(200);
    expect(body).toEqual({ ...active, application_id: target, updated_at: expect.any(String) });
    expect(await domains.find('www.moved.example', application)).toBeUndefined();
    expect(await domains.find('www.moved.example', target)).toEqual(body);
    expect((await domains.move(domain, { application_id: target })).status).toBe(404);
  });

  test('refuses the present application and unknown ones', async () => {
    const domain = await domains.added('www.stays.example', application);
    const other = await service.newProject();
    const foreign = await domains.newApplication('move-foreign', { key: other.key, project: other.id });
    expect((await domains.move(domain, { application_id: application })).body).toMatchObject({
      code: 'validation_failed',
      errors: [{ field: 'application_id' }],
    });
    for (const application_id of [foreign, mintId('app'), 'nonsense']) {
      expect((await domains.move(domain, { application_id })).body).toMatchObject({
        status: 422,
        code: 'reference_not_found',
        field: 'application_id',
      });
    }
    expect((await domains.move(domain, {})).body.errors).toMatchObject([{ field: 'application_id', code: 'required' }]);
  });
});

describe('an application has 100 custom domains at most', () => {
  test('also when several are added or moved at once', async () => {
    const full = await domains.newApplication('full');
    const moving = await domains.added('www.moving.example', application);
    await service.sql(
      `insert into domains (id, project_id, application_id, hostname, type, certificate, verification_token,
        created_at, updated_at)
       select 'dom_' || lpad(n::text, 26, '0'), $1, $2, 'n' || n || '.full.example', 'subdomain', '{}', 'x', now(),
         now() from generate_series(1, 98) as n`,
      [service.project, full],
    );
    const answers = await Promise.all([
      domains.move(moving, { application_id: full }),
      ...[1, 2, 3].map((n) => domains.add(`www.late${n}.example`, full)),
    ]);
    const refused = answers.filter(({ status }) => status === 403);
    expect(refused).toHaveLength(2);
    expect(refused[0]?.body).toMatchObject({ code: 'quota_exceeded', resource: 'domains', used: 100, limit: 100 });
    expect(await service.sql('select count(*) as n from domains where application_id = $1', [full])).toEqual([
      { n: 100 },
    ]);
  });
});

test('GraphQL does the same', async () => {
  const fields = 'id hostname status dns_instructions { purpose type name value status } application { id name }';
  const made = await service.graphql(
    `mutation ($id: ID!) { addApplicationDomain(id: $id, input: { hostname: "WWW.graph.example" }) { ${fields} } }`,
    { id: application },
  );
  const domain = made.data.addApplicationDomain;
  expect(domain).toMatchObject({
    hostname: 'www.graph.example',
    status: 'pending',
    application: { id: application, name: 'shop' },
  });
  domain.dns_instructions.forEach(domains.obey);
  const check = `mutation ($id: ID!, $domain: ID!) { verifyApplicationDomain(id: $id, domain_id: $domain) {
    ${fields} } }`;
  const checked = await service.graphql(check, { id: application, domain: domain.id });
  expect(checked.data.verifyApplicationDomain).toMatchObject({
    status: 'active',
    dns_instructions: [{ status: 'verified' }, { status: 'verified' }],
  });
  dns.fail('_platform-verification.www.graph.example');
  const failed = await service.graphql(check, { id: application, domain: domain.id });
  expect(failed.errors?.[0]?.extensions.code).toBe('provider_error');
});
