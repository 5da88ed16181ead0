/** @tier heavy @quarter 3 @covers clients/dashboard/src */
// Pages that are made of the SDL: every kind has a list, a document and forms, and every operation of the API a place.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  dashboardOf,
  openWindow,
  type Page,
  screenshot,
  signIn,
  violations,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { formsOf, operationIds, resourceTable } from '../support/dashboard/generic';
import { MARKUP, plant } from '../support/dashboard/plant';
import { startGitPeer, type GitPeer } from '../support/git/git_peer';
import { ROOT } from '../support/runner/repository';
import { startService, type TestService } from '../support/service';

let peer: GitPeer;
let service: TestService;
let window: Window;
let page: Page;
let forms: ReturnType<typeof formsOf>;
dashboardOf(
  async () => {
    peer = await startGitPeer('gitea');
    peer.repositories = [{ id: 1, full_name: 'acme/shop', private: true, default_branch: 'main' }];
    peer.git.makeRepository('acme/shop', { 'index.html': 'one' });
    service = await startService({ settings: { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' } });
    await plant(service);
    return {
      url: service.url,
      async close() {
        await service.close();
        await peer.close();
      },
    };
  },
  (opened) => {
    window = opened;
    ({ page } = window);
    forms = formsOf(page);
  },
);

const resources = (rest = ''): string => `/projects/${service.project}/resources${rest}`;

test('every operation of the API is reached from "All resources", through links alone', () => {
  const table = resourceTable();
  const reached = new Set<string>();
  const walk = (key: string): void => {
    const { read, operations, pages } = table.pages[key] as (typeof table.pages)[string];
    for (const name of [read, ...operations]) for (const id of table.operations[name]?.ids ?? []) reached.add(id);
    pages.forEach(walk);
  };
  Object.keys(table.pages)
    .filter((key) => !key.includes('{}'))
    .forEach(walk);
  expect([...reached].sort()).toEqual(operationIds().sort());
});

test('a volume: from the empty list through the form, live, grown, deleted by its name', async () => {
  await visit(page, resources());
  await page.getByRole('link', { name: 'every field of Volumes' }).click();
  await page.getByText('No volume yet').waitFor();
  const command = await page.locator('.empty .command').innerText();
  expect(command).toContain('svc api createVolume --field name=uploads --field size_gb=10');
  // A person with one project needs not name it.
  expect(command).not.toContain('--project');
  await page.locator('.empty').getByRole('button', { name: 'Create volume' }).click();
  await forms.fill('Name', 'uploads');
  await forms.fill('Size GB', '1');
  await page.setViewportSize({ width: 960, height: 600 });
  await screenshot(page, 'dashboard-form');
  await page.getByText('This form as API call').click();
  await page.locator('.generic-form .api-calls pre').first().waitFor();
  const calls = await page.locator('.generic-form .api-calls').innerText();
  expect(calls).toContain(`curl -X POST ${service.url}/v2/volumes`);
  expect(calls).toContain(`-d '{"name":"uploads","size_gb":1}'`);
  await forms.send('Create volume');
  await forms.title('uploads');
  await page.locator('.title .status', { hasText: 'provisioning' }).waitFor();
  await service.sql(`update volumes set status = 'available' where name = 'uploads'`);
  await page.locator('.title .status', { hasText: 'available' }).waitFor();
  await forms.open('Update volume');
  expect(await page.getByLabel('Size GB (optional)').inputValue()).toBe('1');
  await forms.fill('Size GB (optional)', '2');
  await forms.send('Update volume');
  await forms.title('uploads');
  await page.locator('dl.facts div', { hasText: /^Size GB\s*2$/ }).waitFor();
  await forms.remove('Delete volume', 'uploads');
  await page.getByText('No volume yet').waitFor();
});

test('a DNS zone by keyboard alone', async () => {
  await visit(page, resources('/dns_zones'));
  await tabTo('a[href$="do=createDnsZone"]');
  await page.keyboard.press('Enter');
  await forms.title('Create DNS zone');
  await tabTo('input[name=name]');
  await page.keyboard.type('shop.example.net');
  await page.keyboard.press('Enter');
  await forms.title('shop.example.net');
  expect(await violations(page)).toEqual([]);
});

async function tabTo(selector: string): Promise<void> {
  for (let press = 0; press < 60; press += 1) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(`document.activeElement?.matches(${JSON.stringify(selector)})`)) return;
  }
  throw new Error(`${selector} cannot be reached by keyboard`);
}

test('a record: created, refused at its field, and both versions where two people edit it', async () => {
  await page.getByRole('link', { name: 'Records', exact: true }).click();
  await forms.open('Create DNS record');
  await forms.choose('Type', 'A');
  await forms.fill('Name (optional)', 'www');
  await forms.fill('Value', 'not an address');
  await forms.send('Create DNS record');
  await page.locator('.field', { hasText: 'Value' }).locator('small.problem').first().waitFor();
  expect(await page.getByLabel('Value', { exact: true }).getAttribute('aria-invalid')).toBe('true');
  expect(await page.locator('small.problem').count()).toBe(1);
  await forms.fill('Value', '192.0.2.1');
  await forms.send('Create DNS record');
  await page.locator('dl.facts div', { hasText: '192.0.2.1' }).waitFor();
  const record = page.url().replace(/.*\/resources/, '/v2');
  await forms.open('Update DNS record');
  await forms.fill('TTL (optional)', '300');
  await service.call('PATCH', record, { body: { ttl: 600 } });
  await forms.send('Update DNS record');
  const versions = page.locator('.notice.bad table');
  await versions.waitFor();
  expect((await versions.innerText()).replace(/\s+/g, ' ')).toContain('TTL 600 300');
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Keep mine' }).click();
  await forms.send('Update DNS record');
  await page.locator('dl.facts div', { hasText: /^TTL\s*300$/ }).waitFor();
  expect((await service.call('GET', record)).body.ttl).toBe(300);
  await forms.remove('Delete DNS record', 'www');
  await page.locator('h1', { hasText: 'Records' }).waitFor();
});

test('an observer: an object in the form, an error inside of it, another kind as a link', async () => {
  const notifier = await service.call('POST', '/v2/notifiers', {
    body: { name: 'On call', type: 'webhook', config: { url: 'https://ops.example.com/hook' } },
  });
  await visit(page, resources('/observers'));
  await forms.open('Create observer');
  await forms.fill('Name', 'Shop front');
  await forms.choose('Type', 'uptime');
  await page.getByRole('button', { name: 'Set uptime' }).click();
  await forms.fill('Target', 'ftp://nowhere');
  await page.locator('fieldset', { hasText: 'Notifier IDs' }).getByRole('button', { name: /^Add/ }).click();
  await forms.fill('Notifier IDs 1', notifier.body.id);
  await forms.send('Create observer');
  await page.locator('fieldset .field', { hasText: 'Target' }).locator('small.problem').waitFor();
  await forms.fill('Target', 'https://shop.example.com/');
  await forms.send('Create observer');
  await forms.title('Shop front');
  await page.getByRole('link', { name: 'On call' }).click();
  await forms.title('On call');
  await forms.remove('Delete notifier', 'On call');
  await page.getByText('No notifier yet').waitFor();
});

test('a registry: created and deleted', async () => {
  await visit(page, resources('/registries'));
  await forms.open('Create registry');
  await forms.fill('Name', 'images');
  await forms.send('Create registry');
  await forms.title('images');
  await forms.remove('Delete registry', 'images');
  await page.getByText('No registry yet').waitFor();
});

test('a Git integration: its token is never shown, its branches are three lists further', async () => {
  await visit(page, resources('/git_integrations'));
  await forms.open('Create Git integration');
  await forms.choose('Provider', 'gitea');
  await forms.fill('Base URL (optional)', peer.url);
  expect(await page.getByLabel('Access token (optional)').getAttribute('type')).toBe('password');
  await forms.fill('Access token (optional)', 'good-token-1');
  await page.getByText('This form as API call').click();
  await page.locator('.generic-form .api-calls pre').first().waitFor();
  expect(await page.locator('.generic-form .api-calls').innerText()).not.toContain('good-token-1');
  await forms.send('Create Git integration');
  await page.locator('.title .status').waitFor();
  await forms.open('Update Git integration');
  await forms.fill('Name (optional)', 'Source');
  await forms.send('Update Git integration');
  await forms.title('Source');
  await page.getByRole('link', { name: 'Repositories', exact: true }).click();
  await page.getByRole('link', { name: 'acme/shop', exact: true }).click();
  await page.getByRole('link', { name: 'Branches', exact: true }).click();
  await page.locator('tbody th', { hasText: 'main' }).waitFor();
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Source', exact: true }).click();
  await forms.title('Source');
  await forms.remove('Delete Git integration', 'Source');
  await page.getByText('No Git integration yet').waitFor();
});

test('a secret that is shown once stays on the page, covered, until it is left', async () => {
  await visit(page, resources('/bucket_access_keys'));
  await forms.open('Create bucket access key');
  await forms.fill('Name', 'Uploads');
  await forms.send('Create bucket access key');
  await page.getByText('Copy the secret now').waitFor();
  const secret = page.getByLabel('Secret access key', { exact: true });
  expect(await secret.innerText()).toMatch(/^•+$/);
  await page.getByRole('button', { name: 'Show Secret access key' }).click();
  expect(await secret.innerText()).toMatch(/^\w{40}$/);
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Open it' }).click();
  await forms.title('Uploads');
  expect(await secret.count()).toBe(0);
});

test('names with markup are text', async () => {
  await visit(page, resources('/project'));
  await page.getByText(MARKUP, { exact: true }).waitFor();
  await service.sql('update bucket_access_keys set name = $1', [MARKUP]);
  await visit(page, resources('/bucket_access_keys'));
  await page.getByRole('link', { name: MARKUP }).click();
  await forms.title(MARKUP);
  expect([await page.title(), await page.locator('main img').count()]).toEqual([`${MARKUP} · Dashboard`, 0]);
});

test('a viewer sees no control that a viewer may not use, and an address of one says which role it needs', async () => {
  const viewer = await openWindow(service);
  await signIn(viewer, 'viewer@example.org', resources('/dns_zones'));
  await viewer.page.getByRole('link', { name: 'shop.example.net' }).waitFor();
  expect(await viewer.page.getByRole('button', { name: /DNS zone/ }).count()).toBe(0);
  await viewer.page.getByText('View only').click();
  await viewer.page.getByText('An owner of the project can change your role.').waitFor();
  await visit(viewer.page, resources('/dns_zones?do=createDnsZone'));
  await viewer.page.getByText('This needs the role developer.').waitFor();
  expect(await viewer.page.locator('form').count()).toBe(0);
  expect(viewer.complaints).toEqual([]);
});

test('an address that means nothing says so', async () => {
  await visit(page, resources('/nothing/of/this'));
  await page.getByText('The API has nothing at this path.').waitFor();
  for (const rest of ['/__proto__', '/constructor', `/${'a/'.repeat(40)}`]) {
    await visit(page, resources(rest));
    await page.getByText('The API has nothing at this path.').waitFor();
  }
  await visit(page, resources('/volumes/vol_nothing'));
  await page.getByText('This does not exist, or you have no access to it.').waitFor();
  expect(await page.getByRole('button', { name: 'Delete volume' }).count()).toBe(0);
});

test('the table is no part of the first page, and nothing was complained of', () => {
  const document = readFileSync(path.join(ROOT, 'clients/dashboard/dist/index.html'), 'utf8');
  expect(document).not.toMatch(/resources-|generic-/);
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});
