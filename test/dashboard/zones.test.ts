/** @tier heavy @quarter 3 @covers clients/dashboard/src/pages */
// Zones, email domains and observers in the browser.
import {
  dashboardOf,
  newPerson,
  openWindow,
  settled,
  signIn,
  violations,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { MARKUP } from '../support/dashboard/plant';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService({ settings: { DNS_PORT: String(await freePort()) } });
    await newPerson(service, 'owner@example.org', 'owner');
    await newPerson(service, 'viewer@example.org', 'viewer');
    return service;
  },
  (opened) => void (window = opened),
);

const project = (page: string): string => `/projects/${service.project}/${page}`;
let zone = '';
const records = async (): Promise<Record<string, unknown>[]> =>
  (await service.call('GET', `/v2/dns_zones/${zone}/records?sort=created_at`)).body.data;

test('a zone is created, and a record of each shape added, changed and deleted', async () => {
  const { page } = window;
  await keepsTheRules(page, project('dns'));
  await page.getByLabel('Domain', { exact: true }).fill('not a domain');
  await page.getByRole('button', { name: 'Create zone' }).click();
  await page.locator('.field small.problem').first().waitFor();
  await page.getByLabel('Domain', { exact: true }).fill('shop.example');
  await page.getByRole('button', { name: 'Create zone' }).click();
  await page.waitForURL(/\/dns\/dnz_\w+$|\/dns\/\w+$/);
  await settled(page);
  zone = page.url().split('/').at(-1) as string;
  const state = await page.locator('section', { hasText: 'Found in the parent zone' }).locator('p').first().innerText();
  expect(state).toMatch(/^unknown\n+The delegation has not been checked yet\.$/);
  await page.getByRole('button', { name: 'Add a record' }).click();
  await page.getByLabel('Value', { exact: true }).fill('not an address');
  await page.getByRole('button', { name: 'Add the record' }).click();
  await page.locator('.field small.problem').first().waitFor();
  await page.getByLabel('Record type').selectOption('MX');
  await page.getByLabel('Value', { exact: true }).fill('mail.shop.example');
  await page.getByLabel('Comment').fill(MARKUP);
  await page.getByRole('button', { name: 'Add the record' }).click();
  await page.locator('td', { hasText: '10 mail.shop.example' }).waitFor();
  expect(await page.locator('main img').count()).toBe(0);
  await page.getByRole('button', { name: 'Edit MX of @' }).click();
  await page.getByLabel('Priority').fill('20');
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save the record' }).click();
  await page.locator('td', { hasText: '20 mail.shop.example' }).waitFor();
  await page.getByRole('button', { name: 'Delete MX of @' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect((await records()).filter(({ type }) => type === 'MX')).toEqual([]);
  await page
    .locator('.toast', { hasText: 'The record MX of @ was deleted.' })
    .getByRole('button', { name: 'Undo' })
    .click();
  await page.locator('td', { hasText: '20 mail.shop.example' }).waitFor();
  expect((await records()).filter(({ type }) => type === 'MX')).toHaveLength(1);
  await page.getByRole('button', { name: 'Delete MX of @' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Add a record' }).click();
  await page.getByLabel('Record type').selectOption('HTTPS');
  await page.getByLabel('Value', { exact: true }).fill('1 . colour=red');
  await page.getByRole('button', { name: 'Add the record' }).click();
  await page.locator('.field small.problem', { hasText: 'known parameters' }).waitFor();
  await page.getByLabel('Value', { exact: true }).fill('1 . alpn=h2');
  await page.getByRole('button', { name: 'Add the record' }).click();
  await page.locator('td', { hasText: '1 . alpn=h2' }).waitFor();
});

test('a zone file is imported after a look at what it changes, and exported', async () => {
  const { page } = window;
  await page.getByLabel('Text of the zone file').fill('www 300 IN A 192.0.2.7\napi 300 IN A 192.0.2.8\n');
  await page.getByRole('button', { name: 'Show what would change' }).click();
  await page.getByText('It would be: 2 created').waitFor();
  expect((await records()).filter(({ name }) => name === 'www')).toEqual([]);
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByText('Imported: 2 created').waitFor();
  await page.locator('td', { hasText: '192.0.2.7' }).waitFor();
  await page.evaluate(`(() => {
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => (void blob.text().then((text) => (window.exported = text)), make(blob));
  })()`);
  await page.getByRole('button', { name: 'Export' }).click();
  for (;;) {
    const text = (await page.evaluate('window.exported ?? null')) as string | null;
    if (text === null) continue;
    expect(text).toMatch(/www\S*\s+300\s+IN\s+A\s+192\.0\.2\.7/);
    break;
  }
  await keepsTheRules(page, `/dns/${zone}`);
});

test('an email domain shows the records to set, with their state', async () => {
  const { page } = window;
  await keepsTheRules(page, project('email_domains'));
  await page.getByLabel('Domain', { exact: true }).fill('mail.example.org');
  await page.getByLabel('Records', { exact: true }).selectOption('manual');
  await page.getByRole('button', { name: 'Add the domain' }).click();
  await page.getByRole('heading', { name: 'mail.example.org' }).waitFor();
  await settled(page);
  await page.getByRole('row', { name: /dkim/ }).first().waitFor();
  await keepsTheRules(page, new URL(page.url()).pathname);
});

test('an observer has its incidents in a line, and its response times', async () => {
  const { page } = window;
  await keepsTheRules(page, project('observers'));
  await page.getByLabel('Name', { exact: true }).fill('Shop');
  await page.getByLabel('URL', { exact: true }).fill('nothing');
  await page.getByRole('button', { name: 'Create observer' }).click();
  await page.locator('.field small.problem').first().waitFor();
  await page.getByLabel('URL', { exact: true }).fill('https://shop.example.com/');
  await page.getByRole('button', { name: 'Create observer' }).click();
  await page.getByRole('heading', { name: 'Shop' }).waitFor();
  await page.getByText('No incidents yet.').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Resume' }).waitFor();
});

test('notifiers of an observer are created, chosen and tested on its page', async () => {
  const { page } = window;
  await page.getByText('This observer has no notifiers. Choose one, or create one.').waitFor();
  await page.getByText('New notifier').click();
  const form = page.locator('form', { hasText: 'Create notifier' });
  await form.getByLabel('Name').fill('On call');
  await form.getByLabel('Type').selectOption('slack');
  await form.getByLabel('Incoming webhook of Slack').fill('http://localhost/hook');
  await form.getByRole('button', { name: 'Create notifier' }).click();
  await form.locator('[role=alert], small.problem').first().waitFor();
  await form.getByLabel('Type').selectOption('email');
  await form.getByLabel('Addresses, separated by commas').fill('ops@example.com, ada@example.com');
  await form.getByRole('button', { name: 'Create notifier' }).click();
  const chosen = page.getByLabel('On call', { exact: true });
  await page.locator('.notifiers input:checked').waitFor();
  const notifierCounts = async (): Promise<number[]> => {
    const { data } = (await service.call('GET', '/v2/observers')).body;
    const { data: known } = (await service.call('GET', '/v2/notifiers')).body;
    expect(known.map(({ config }: { config: object }) => config)).toMatchObject([
      { addresses: ['ops@example.com', 'ada@example.com'] },
    ]);
    return data.map(({ notifier_ids }: { notifier_ids: string[] }) => notifier_ids.length);
  };
  expect(await notifierCounts()).toEqual([1]);
  await page.getByRole('button', { name: 'Test On call' }).click();
  await page.locator('.notifiers [role=status]', { hasText: /\.$/ }).waitFor();
  await chosen.uncheck();
  await page.getByRole('button', { name: 'Save notifiers' }).click();
  await page.getByText('This observer has no notifiers. Choose one, or create one.').waitFor();
  expect(await notifierCounts()).toEqual([0]);
  await keepsTheRules(page, new URL(page.url()).pathname);
});

test('a notifier of a type with several fields is created with what is filled in', async () => {
  const { page } = window;
  await page.getByText('New notifier').click();
  const form = page.locator('form', { hasText: 'Create notifier' });
  await form.getByLabel('Name').fill('Phone');
  await form.getByLabel('Type').selectOption('gotify');
  await form.getByLabel('Token of the application').fill('left over');
  await form.getByLabel('Type').selectOption('ntfy');
  await form.getByLabel('Topic').fill('a-name-that-nobody-guesses');
  await form.getByRole('button', { name: 'Create notifier' }).click();
  await page.getByLabel('Phone', { exact: true }).waitFor();
  const { data } = (await service.call('GET', '/v2/notifiers?type=ntfy')).body;
  expect(data).toMatchObject([{ name: 'Phone', config: { topic: '***sses', token: null, url: null } }]);
});

test('a viewer sees all of it, and no control', async () => {
  const viewer = await openWindow(service);
  const { page } = viewer;
  await signIn(viewer, 'viewer@example.org', `/dns/${zone}`);
  for (const name of ['Add a record', 'Import', 'Check now']) {
    expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0);
  }
  for (const list of ['dns', 'email_domains', 'observers']) {
    await visit(page, project(list));
    expect(await page.locator('main form').count()).toBe(0);
  }
  expect(viewer.complaints).toEqual([]);
});

test('nothing was asked elsewhere, and the policy of the page was never broken', () => {
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});
