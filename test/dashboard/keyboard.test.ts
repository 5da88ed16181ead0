/** @tier heavy @quarter 3 @covers clients/dashboard/src */
// Whole ways without a mouse. Whatever Tab reaches is seen, and the focus returns to what opened a dialog or a form.
import { startDeployService, type DeployService } from '../support/deployments/deploy';
import {
  dashboardOf,
  newPerson,
  openWindow,
  settled,
  signIn,
  visit,
  type Page,
  type Window,
} from '../support/dashboard/chromium';
import { keyboardOf, type Keyboard } from '../support/dashboard/keyboard';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

const DAY_MS = 86_400_000;

let service: DeployService;
let window: Window;
let page: Page;
let keys: Keyboard;
dashboardOf(
  async () => {
    const ports = { DNS_PORT: String(await freePort()), S3_PORT: String(await freePort()) };
    service = await startDeployService(ports);
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => {
    window = opened;
    ({ page } = window);
    keys = keyboardOf(page);
  },
);

const project = (place = ''): string => `/projects/${service.project}${place}`;
const inDialog = () => page.getByRole('dialog');
const pathOf = (): string => new URL(page.url()).pathname;
let application = '';

/** Opens a dialog by what has the focus, closes it with Escape, and opens it again: the focus comes back to it. */
async function openTwice(name: string): Promise<void> {
  await keys.press('Enter');
  await inDialog().waitFor();
  expect((await keys.focused()).isInDialog).toBe(true);
  await keys.press('Escape');
  await inDialog().waitFor({ state: 'detached' });
  await keys.waitFor(name);
  await keys.press('Enter');
  await inDialog().waitFor();
}

test('the first Tab skips the frame', async () => {
  await visit(page, project());
  await keys.press('Tab');
  expect(await keys.focused()).toMatchObject({ name: 'Skip to content', isMarked: true, isInView: true });
  await keys.press('Enter');
  await keys.waitFor('main');
  await keys.press('Tab');
  expect(await page.evaluate(`document.getElementById('main').contains(document.activeElement)`)).toBe(true);
  expect(pathOf()).toBe(project());
});

test('a key that comes right after the one that opens a question reaches it', async () => {
  await visit(page, '/');
  await keys.tabTo('New project');
  const isOpen = await page.evaluate(`(async () => {
    document.activeElement.click();
    while (!document.querySelector('dialog')) await null;
    await null;
    return document.querySelector('dialog').open;
  })()`);
  expect(isOpen).toBe(true);
  await keys.press('Escape');
  await inDialog().waitFor({ state: 'detached' });
});

test('a project that is half typed is not thrown away by Escape', async () => {
  await visit(page, '/');
  await keys.tabTo('New project');
  await openTwice('New project');
  await keys.waitFor('Name');
  await keys.type('Second');
  const question = page.getByRole('dialog', { name: 'Close without saving?' });
  // More than once: browsers let a page refuse only the first in a row.
  for (let time = 0; time < 3; time += 1) {
    await keys.press('Escape');
    await question.waitFor();
    await keys.waitFor('Keep editing');
    await keys.press('Escape');
    await question.waitFor({ state: 'detached' });
    await keys.waitFor('Name');
  }
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Second');
  await keys.press('Escape');
  await keys.tabTo('Discard');
  await keys.press('Enter');
  await keys.waitFor('New project');
  expect(await inDialog().count()).toBe(0);
  // What follows is asked about again.
  await keys.press('Enter');
  await keys.waitFor('Name');
  await keys.type('Third');
  await keys.press('Escape');
  await question.waitFor();
  await keys.press('Enter');
  await keys.waitFor('Name');
  await keys.press('Enter');
  await page.getByRole('heading', { name: 'Third' }).waitFor();
  await keys.waitFor('main');
});

test('a preset is chosen, deployed and live', async () => {
  await visit(page, project());
  await keys.tabTo('New application');
  await keys.press('Enter');
  await page.waitForURL(project('/new'));
  await settled(page);
  await keys.tabTo(/^Git repository/);
  await keys.press('ArrowDown');
  await keys.waitFor(/^Folder/);
  await keys.press('ArrowDown');
  await keys.waitFor(/^Preset/);
  await page.getByRole('group', { name: 'Preset' }).waitFor();
  await keys.press('Tab');
  for (let press = 0; press < 60; press += 1) {
    if ((await keys.focused()).name.startsWith('Static site')) break;
    await keys.press('ArrowDown');
  }
  await keys.press('Space');
  await keys.tabTo('Name');
  await keys.press('Control+a');
  await keys.type('site');
  await keys.press('Enter');
  await page.getByRole('heading', { name: 'Deployment #1' }).waitFor();
  application = pathOf().split('/deployments')[0] as string;
  await page.locator('.headline .status', { hasText: 'active' }).waitFor({ timeout: 60_000 });
  await keys.tabTo(/^Open/);
}, 120_000);

test('a process type is scaled', async () => {
  await visit(page, `${application}/processes`);
  await keys.tabTo('Instances of web');
  await keys.press('ArrowUp');
  await keys.tabTo('Scale');
  await keys.press('Enter');
  await page.locator('.row button[aria-disabled=true]', { hasText: 'Scale' }).waitFor();
  await keys.waitFor('Scale');
  expect(await page.getByLabel('Instances of web').inputValue()).toBe('2');
  const { data } = (await service.call('GET', `/v2${application}/processes`)).body;
  expect(data.map(({ instances }: { instances: number }) => instances)).toEqual([2]);
});

test('a variable is added, compared and saved', async () => {
  await visit(page, `${application}/environment`);
  await keys.tabTo('Add a variable');
  await keys.press('Enter');
  await keys.waitFor('Name of new variable');
  await keys.type('COLOUR');
  await keys.tabTo('Value of COLOUR');
  await keys.type('green');
  await keys.tabTo('Review and save');
  await openTwice('Review and save');
  await inDialog().locator('ins', { hasText: 'green' }).waitFor();
  await keys.tabTo(/^Restart the application/);
  await keys.press('Space');
  await keys.tabTo('Save');
  await keys.press('Enter');
  await page.getByText('The next deployment or restart uses it.').waitFor();
  await keys.waitFor('Review and save');
  await keys.tabTo(/./);
});

test('a variable that is taken out again leaves the focus beside it', async () => {
  await visit(page, `${application}/environment`);
  await keys.tabTo('Add a variable');
  await keys.press('Enter');
  await keys.waitFor('Name of new variable');
  await keys.tabTo('Remove new variable');
  await keys.press('Enter');
  await keys.waitFor('Add a variable');
});

test('an application is deleted by its name', async () => {
  await visit(page, `${application}/settings`);
  await keys.tabTo('Delete the application');
  await openTwice('Delete the application');
  await keys.waitFor(/^Type site/);
  await keys.type('site');
  await keys.tabTo('Delete the application');
  await keys.press('Enter');
  await page.waitForURL(project());
  await settled(page);
  await keys.waitFor('main');
  const { status, body } = await service.call('GET', `/v2${application}`);
  expect(status === 404 || body.status === 'deleting').toBe(true);
});

test('a record of a zone is added, changed and deleted', async () => {
  await visit(page, project('/dns'));
  await keys.tabTo('Domain');
  await keys.type('shop.example');
  await keys.press('Enter');
  await page.waitForURL(/\/dns\/\w+$/);
  await settled(page);
  await keys.waitFor('main');
  await keys.tabTo('Add a record');
  await keys.press('Enter');
  await keys.waitFor('Record type');
  await keys.type('MX');
  await keys.tabTo('Value');
  await keys.type('mail.shop.example');
  await keys.press('Enter');
  await page.locator('td code', { hasText: '10 mail.shop.example' }).waitFor();
  await keys.waitFor('Add a record');
  await keys.tabTo('Edit MX of @');
  await keys.press('Enter');
  await keys.waitFor('Record type');
  await keys.tabTo('Cancel');
  await keys.press('Enter');
  await keys.waitFor('Edit MX of @');
  await keys.press('Enter');
  await keys.waitFor('Record type');
  await keys.tabTo('Priority');
  await keys.press('Control+a');
  await keys.type('20');
  await keys.press('Enter');
  await page.locator('td code', { hasText: '20 mail.shop.example' }).waitFor();
  await keys.waitFor('Edit MX of @');
  await keys.tabTo('Delete MX of @');
  await openTwice('Delete MX of @');
  await keys.tabTo('Delete');
  await keys.press('Enter');
  await page.locator('td code', { hasText: '20 mail.shop.example' }).waitFor({ state: 'detached' });
  // The row is gone, and so is its button.
  await keys.waitFor(/^(Records|main)$/);
});

test('a file is uploaded into a bucket, and deleted', async () => {
  page.on('filechooser', (chooser) => {
    void chooser.setFiles([{ name: 'logo.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') }]);
  });
  await visit(page, project('/buckets'));
  await keys.tabTo('Name');
  await keys.type('shop-assets');
  await keys.press('Enter');
  await page.waitForURL(/\/buckets\/bkt_\w+$/);
  await settled(page);
  await keys.tabTo('Allow uploads from this page');
  await keys.press('Enter');
  await keys.waitFor('Upload files');
  await keys.press('Enter');
  await page.locator('.row', { hasText: 'logo.txt' }).getByText('uploaded').waitFor();
  await keys.waitFor('Upload files');
  await keys.tabTo('Delete logo.txt');
  await openTwice('Delete logo.txt');
  await keys.tabTo('Delete');
  await keys.press('Enter');
  await page.getByText('The bucket is empty').waitFor();
  await keys.waitFor('main');
});

test('nothing was complained of', () => {
  expect(window.complaints).toEqual([]);
});

describe('a database', () => {
  let rows: TestService;
  beforeAll(async () => {
    // Without a worker, nobody corrects its row.
    rows = await startService();
    await newPerson(rows, 'owner@example.org', 'owner');
  });
  afterAll(() => rows?.close());

  test('is restored to a point in time, which is chosen on the slider', async () => {
    const latest = Math.floor(Date.now() / 1_000) * 1_000;
    const period = { earliest: new Date(latest - DAY_MS).toISOString(), latest: new Date(latest).toISOString() };
    const made = await rows.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } });
    await rows.sql(`update databases set status = 'available', point_in_time_window = $2 where id = $1`, [
      made.body.id,
      JSON.stringify(period),
    ]);
    const opened = await openWindow(rows);
    await signIn(opened, 'owner@example.org', `/databases/${made.body.id}/restore`);
    ({ page } = opened);
    keys = keyboardOf(page);
    await keys.tabTo('Point in time');
    await keys.press('Home');
    await keys.press('ArrowRight', 3);
    await keys.tabTo('1 hour later');
    await keys.press('Enter');
    await keys.tabTo('Restore into a copy');
    await openTwice('Restore into a copy');
    await keys.tabTo('Restore');
    await keys.press('Enter');
    await page.getByRole('heading', { name: /^orders-\d+$/ }).waitFor();
    await keys.waitFor('main');
    const { restore_from } = (await rows.call('GET', `/v2${pathOf()}`)).body;
    expect(Date.parse(restore_from.point_in_time)).toBe(Date.parse(period.earliest) + 3_780_000);
    expect(opened.complaints).toEqual([]);
  }, 60_000);
});
