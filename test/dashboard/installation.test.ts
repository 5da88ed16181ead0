/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/installation */
// The installation in the browser: for operators alone, with what is missing, and what to do in a checkout.
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import {
  dashboardOf,
  newPerson,
  openWindow,
  overflow,
  settled,
  signIn,
  violations,
  visit,
  WIDTHS,
  type Window,
} from '../support/dashboard/chromium';
import { startService, type TestService } from '../support/service';

const HERE = '192.0.2.10';
const CHANGES = '### Added\n\n- A page for operators.\n\n### Security\n\n- A hole is closed.';

let service: TestService;
let dns: DnsServer;
let window: Window;
dashboardOf(
  async () => {
    dns = await startDnsServer({ 'platform.example.com A': [HERE], '*.apps.example.com A': ['192.0.2.99'] });
    service = await startService({ settings: { DNS_RESOLVERS: dns.address } });
    await newPerson(service, 'owner@example.org', 'owner');
    await newPerson(service, 'tenant@example.org', 'owner');
    await service.sql(`update users set is_operator = true where email = 'owner@example.org'`, []);
    const security = '- A hole is closed.';
    const release = { version: '99.0.0', released_at: '2026-11-28T00:00:00Z', security, changes: CHANGES };
    await service.sql('update release_notices set release = $1', [JSON.stringify(release)]);
    return service;
  },
  (opened) => void (window = opened),
);
afterAll(() => dns?.close());

async function expectGood(): Promise<void> {
  const { page } = window;
  for (const width of [390, ...WIDTHS]) {
    await page.setViewportSize({ width, height: 900 });
    expect([width, await overflow(page)]).toEqual([width, 0]);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([width, colorScheme, await violations(page)]).toEqual([width, colorScheme, []]);
    }
  }
}

test('an operator finds the installation in the menu, and what is to be done there', async () => {
  const { page } = window;
  await visit(page, '/');
  await page.getByLabel('Account of owner@example.org').click();
  await page.locator('.menu-list').getByRole('link', { name: 'Installation', exact: true }).click();
  await page.waitForURL('/installation');
  await settled(page);
  await page.getByRole('heading', { name: 'Version 99.0.0 is available, with changes to security' }).waitFor();
  await page.getByText('This is no installed release.').waitFor();
  expect(await page.getByText('- A page for operators.').count()).toBe(1);
  expect(await page.getByRole('button', { name: 'Upgrade to 99.0.0' }).count()).toBe(0);
  expect(await page.getByLabel('command').first().textContent()).toContain('platform upgrade 99.0.0');
  await expectGood();
});

test('the page of alarms shows what is wrong, and who is told is chosen there', async () => {
  const { page } = window;
  await service.sql(
    `insert into installation_alarms (id, name, subject, level, announced_level, title, detail, announced_at, ended_at)
      values ('alm_1', 'disk', '/data', 90, 90, 'The disk of /data is 91 % full', 'Free room.', now(), null),
        ('alm_2', 'clock', '', 1, 1, 'The clock is behind by 3 s', 'Set it.', now(), now())`,
    [],
  );
  await service.sql('update alarm_evaluations set evaluated_at = now()', []);
  await visit(page, '/installation');
  await page.getByText('The disk of /data is 91 % full').waitFor();
  await page.getByRole('link', { name: 'Alarms and who is told' }).click();
  await page.getByText('No notifier is chosen: operators get e-mail at owner@example.org.').waitFor();
  await page.getByText('You have no notifiers.').waitFor();
  await page.getByRole('rowheader', { name: 'The clock is behind by 3 s' }).waitFor();
  await service.call('POST', '/v2/notifiers', {
    body: { name: 'On call', type: 'ntfy', config: { topic: 'a-name-that-nobody-guesses' } },
  });
  await visit(page, '/installation/alarms');
  const box = page.getByLabel('On call', { exact: true });
  await box.check();
  await page.getByRole('button', { name: 'Save notifiers' }).click();
  await page.getByText('No notifier is chosen').waitFor({ state: 'detached' });
  await page.locator('.notifiers input:checked').waitFor();
  await expectGood();
  await service.sql(`update alarm_evaluations set evaluated_at = now() - interval '1 hour'`, []);
  await visit(page, '/installation/alarms');
  await page.getByText('Alarms are not evaluated since').waitFor();
});

test('the page of the domain shows records, where names lead, and follows them', async () => {
  const { page } = window;
  await visit(page, '/installation');
  await page.getByRole('link', { name: 'Give it a domain' }).click();
  await page.getByLabel('Domain', { exact: true }).fill('https://example.com/');
  await page.getByRole('button', { name: 'Show what it needs' }).click();
  await page.getByText('takes a domain alone').waitFor();
  await page.getByLabel('Domain', { exact: true }).fill('example.com');
  await page.getByText('More', { exact: true }).click();
  await page.getByLabel('Public addresses').fill(HERE);
  await page.getByRole('button', { name: 'Show the records again' }).click();
  await page.getByRole('heading', { name: 'Where the names lead' }).waitFor();
  await page.getByText('leads to 192.0.2.99, which is not this machine').waitFor();
  await page.getByText('The settings of a checkout or a container').waitFor();
  await expectGood();
});

test('a setup of which the service knows nothing any more gives way to the form', async () => {
  const { page } = window;
  await visit(page, '/installation');
  const stored = { token: 'set_forgotten', address: 'https://platform.example.com' };
  await page.evaluate(`localStorage.setItem('setup', ${JSON.stringify(JSON.stringify(stored))})`);
  await visit(page, '/installation/domain');
  await page.getByRole('button', { name: 'Show what it needs' }).waitFor();
  expect(await page.evaluate(`localStorage.getItem('setup')`)).toBeNull();
});

test('a setup is followed without a session, which ends with the address of before', async () => {
  const { page } = await openWindow(service);
  const setupProgress = { outcome: 'running', lines: ['Waiting for the certificate.'], reason: null, address: '' };
  await page.goto('/sign-in');
  await page.evaluate(`localStorage.setItem('setup', '{"token": "set_x", "address": "https://platform.example.com"}')`);
  await page.route('**/graphql', (route) =>
    route.fulfill({ status: 200, body: JSON.stringify({ data: { setupProgress } }) }),
  );
  await visit(page, '/installation/domain/progress');
  await page.getByRole('heading', { name: 'Setting up https://platform.example.com' }).waitFor();
  await page.getByText('Waiting for the certificate.').waitFor();
  expect(await violations(page)).toEqual([]);
  await page.unroute('**/graphql');
  await page.waitForURL('/sign-in?return_to=%2Finstallation%2Fdomain');
});

test('who is no operator finds neither link nor page', async () => {
  const other = await openWindow(service);
  await signIn(other, 'tenant@example.org');
  await other.page.getByLabel('Account of tenant@example.org').click();
  expect(await other.page.getByRole('link', { name: 'Installation', exact: true }).count()).toBe(0);
  for (const place of ['/installation', '/installation/domain']) {
    await visit(other.page, place);
    await other.page.getByText('This does not exist, or you have no access to it.').waitFor();
  }
});
