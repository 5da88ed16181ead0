// Operators see and change the installation in their sessions; nobody else does, and nothing else leads there.
import { version } from '../../package.json';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { PASSWORD, newBrowser, type Browser } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';

const STATE = '{ installationState { base_url apps_domain upgrade_obstacle version_before upgrade { outcome } } }';
const UPGRADE = `mutation ($version: String!, $password: String!) {
  upgradeInstallation(version: $version, password: $password) { base_url } }`;
const ROLL_BACK = UPGRADE.replace('upgradeInstallation', 'rollBackInstallation');
const NEWER = '99.0.0';
const PLAN = `query ($input: SetupInput!) { setupPlan(input: $input) { address
  records { name type value purpose } names { name status detail } settings { name value } } }`;
const SET_UP = `mutation ($input: SetupInput!, $password: String!) {
  setUpInstallation(input: $input, password: $password) { token address } }`;
const PROGRESS = 'query ($token: String!) { setupProgress(token: $token) { outcome } }';
const HERE = '192.0.2.10';
const INPUT = { domain: 'example.com', ips: [HERE] };

let service: TestService;
let dns: DnsServer;
let operator: Browser & { user: { id: string } };
let tenant: Browser;
beforeAll(async () => {
  dns = await startDnsServer({ 'platform.example.com A': [HERE], '*.apps.example.com A': ['192.0.2.99'] });
  service = await startService({ settings: { DNS_RESOLVERS: dns.address } });
  operator = await newBrowser(service, 'operator@example.com');
  tenant = await newBrowser(service, 'tenant@example.com', 'owner');
  await role(true);
  const release = { version: NEWER, released_at: '2026-11-28T00:00:00Z', security: null, changes: '- More' };
  await service.sql('update release_notices set release = $1', [JSON.stringify(release)]);
});
afterAll(async () => {
  await service.close();
  await dns.close();
});

const role = (is: boolean): Promise<unknown> =>
  service.sql('update users set is_operator = $1 where email = $2', [is, 'operator@example.com']);

test('an operator sees the installation, and in a checkout what to do instead of pressing a button', async () => {
  const { installationState: state } = await operator.data(STATE);
  expect(state).toEqual({
    base_url: service.platform.config.baseUrl,
    apps_domain: 'localhost',
    upgrade_obstacle: expect.stringMatching(/^This is no installed release\. Upgrade a checkout by `git pull/),
    ...{ version_before: null, upgrade: null },
  });
  const refused = await operator.refused(UPGRADE, { version: NEWER, password: PASSWORD });
  expect([refused.code, refused.message]).toEqual(['engine_unavailable', state.upgrade_obstacle]);
});

test('certificates of the platform are listed with what is wrong, those of tenants counted', async () => {
  await service.sql(
    `insert into certificates (id, reason, reason_since) values
      ('platform.example.com', 'The authority refuses.', now() - interval '2 hours'), ('s3.example.com', null, null)`,
    [],
  );
  const found = await operator.data(
    '{ installationState { expiring_certificates certificates { hostname expires_at reason needs_attention } } }',
  );
  expect(found.installationState).toEqual({
    expiring_certificates: 0,
    certificates: [
      {
        hostname: 'platform.example.com',
        expires_at: null,
        reason: 'The authority refuses.',
        needs_attention: true,
      },
      { hostname: 's3.example.com', expires_at: null, reason: null, needs_attention: false },
    ],
  });
});

test.each([
  ['installationState', STATE],
  ['upgradeInstallation', UPGRADE],
  ['rollBackInstallation', ROLL_BACK],
  ['setupPlan', PLAN],
  ['setUpInstallation', SET_UP],
  ['installationAlarms', '{ installationAlarms { evaluated_at } }'],
  ['chooseAlarmNotifiers', 'mutation { chooseAlarmNotifiers(ids: []) { evaluated_at } }'],
])('%s is refused to a tenant, whatever their password, and to who was an operator until now', async (_, query) => {
  const all = { version: NEWER, password: PASSWORD, input: INPUT };
  const variables = Object.fromEntries(Object.entries(all).filter(([name]) => query.includes(`$${name}`)));
  const { code, status, extensions } = await tenant.refused(query, variables);
  expect([code, status, extensions.required_role]).toEqual(['role_not_permitted', 403, 'operator']);
  await role(false);
  expect((await operator.refused(query, variables)).code).toBe('role_not_permitted');
  await role(true);
});

test('a session alone does nothing: the password is asked for', async () => {
  for (const query of [UPGRADE, ROLL_BACK]) {
    const refused = await operator.refused(query, { version: NEWER, password: 'not the password' });
    expect([refused.code, refused.extensions.errors]).toEqual([
      'validation_failed',
      [expect.objectContaining({ field: 'password' })],
    ]);
  }
});

test.each([version, '98.0.0', '../../../tmp', 'https://example.com/platform.tar.gz', '99.0.0\n', '99.0.0 ', ''])(
  'a version that the signed index does not name as the newer one leads nowhere: %j',
  async (wrong) => {
    for (const query of [UPGRADE, ROLL_BACK]) {
      const refused = await operator.refused(query, { version: wrong, password: PASSWORD });
      expect([refused.code, refused.extensions.errors]).toEqual([
        'validation_failed',
        [expect.objectContaining({ field: 'version' })],
      ]);
    }
  },
);

test('the plan of a domain has its records, and where its names lead now', async () => {
  const { setupPlan: plan } = await operator.data(PLAN, { input: INPUT });
  expect(plan.address).toBe('https://platform.example.com');
  expect(plan.records[0]).toEqual({
    ...{ name: 'platform.example.com', type: 'A', value: HERE, purpose: 'dashboard and API' },
  });
  const states = Object.fromEntries(plan.names.map((one: { name: string; status: string }) => [one.name, one.status]));
  expect(states).toMatchObject({
    ...{ 'platform.example.com': 'ok', '*.apps.example.com': 'wrong', 's3.example.com': 'missing' },
  });
  expect(plan.settings).toContainEqual({ name: 'BASE_URL', value: 'https://platform.example.com' });
});

test.each([
  [
    { domain: 'https://example.com/' },
    'domain',
    'takes a domain alone, not a URL or an address of mail: domain example.com',
  ],
  [{ domain: '192.0.2.1' }, 'domain', expect.stringContaining('is an IP address')],
  [{ domain: 'example.com\nPORT=1' }, 'domain', expect.any(String)],
  [{ domain: 'example.com\u0000' }, 'domain', expect.any(String)],
  [{ domain: '\u202eexample.com' }, 'domain', expect.any(String)],
  [{ domain: '--force' }, 'domain', expect.any(String)],
  [{ domain: '$(reboot).com' }, 'domain', expect.any(String)],
  [{ domain: 'co.uk' }, 'domain', expect.stringContaining('is a public suffix')],
  [{ domain: 'x'.repeat(254) }, 'domain', expect.any(String)],
  [{ domain: 'example.com', apps_domain: 'example.com' }, 'apps_domain', expect.stringContaining('would be below')],
  [{ domain: 'example.com', ips: ['192.0.2.1 --force'] }, 'ips', 'must be IP addresses'],
  [{ domain: 'example.com', email: 'a%n${HOME}@example.com' }, 'email', expect.any(String)],
  [{ domain: 'example.com', email: 'ops@example.com\nX=1' }, 'email', expect.any(String)],
])('what is no domain is refused at its field, and starts nothing: %j', async (input, field, detail) => {
  for (const [query, variables] of [
    [PLAN, { input }],
    [SET_UP, { input, password: PASSWORD }],
  ] as const) {
    const refused = await operator.refused(query, variables);
    expect([refused.code, refused.extensions.errors]).toEqual([
      'validation_failed',
      [expect.objectContaining({ field, detail })],
    ]);
  }
});

test('in a checkout nothing is set up, and no token tells of a setup', async () => {
  const refused = await operator.refused(SET_UP, { input: INPUT, password: PASSWORD });
  expect([refused.code, refused.message]).toEqual([
    'engine_unavailable',
    'The settings of a checkout or a container are in no file that the platform may change.',
  ]);
  expect((await operator.refused(SET_UP, { input: INPUT, password: 'not the password' })).code).toBe(
    'validation_failed',
  );
  expect((await tenant.refused(PROGRESS, { token: 'set_x' })).code).toBe('not_found');
});

test('no form of another site, no link and no dry run starts anything', async () => {
  const body = JSON.stringify({ query: UPGRADE, variables: { version: NEWER, password: PASSWORD } });
  const post = (type: string): Promise<Response> =>
    fetch(`${service.url}/graphql`, {
      method: 'POST',
      body,
      headers: { Cookie: operator.cookie(), 'Content-Type': type },
    });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
    expect((await post(type)).status).toBe(415);
  const variables = JSON.stringify({ version: NEWER, password: PASSWORD });
  const link = new URLSearchParams({ query: UPGRADE, variables });
  const got = await fetch(`${service.url}/graphql?${link}`, { headers: { Cookie: operator.cookie() } });
  expect([403, 405]).toContain(got.status);
  const { errors } = await operator.run(UPGRADE, { version: NEWER, password: PASSWORD }, { 'Dry-Run': 'true' });
  expect(errors?.[0]?.extensions.code).toBe('dry_run_unsupported');
});

test('what was refused has left no trace but refusals', async () => {
  expect(await service.sql(`select * from activity where action like 'installation.%'`, [])).toEqual([]);
});
