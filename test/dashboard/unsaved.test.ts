/** @tier heavy @quarter 3 @covers clients/dashboard/src/parts clients/dashboard/src/router.ts */
// Nobody loses unasked what they have typed: by a link, a key, "back" or a reload. Nobody is asked after saving.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  buildDashboard,
  closeBrowser,
  fileNeedsChromium,
  newPerson,
  openWindow,
  settled,
  signIn,
  violations,
  visit,
  type Page,
  type Window,
} from '../support/dashboard/chromium';
import { ROOT } from '../support/runner/repository';
import { startService, type TestService } from '../support/service';

fileNeedsChromium();

let service: TestService;
let window: Window;
let page: Page;
let application: string;
/** Questions of the browser itself, each of which is answered with "Stay". */
const asked: string[] = [];
beforeAll(async () => {
  buildDashboard();
  service = await startService();
  await newPerson(service, 'owner@example.org', 'owner');
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop', preset: 'node-web' } })).body
    .id;
  window = await openWindow(service);
  page = window.page;
  page.on('dialog', (dialog) => {
    asked.push(dialog.type());
    void dialog.dismiss();
  });
  await signIn(window, 'owner@example.org');
}, 120_000);
afterAll(async () => {
  await closeBrowser();
  await service?.close();
});

const question = () => page.getByRole('dialog', { name: 'Leave without saving?' });
const answer = async (name: 'Stay' | 'Leave'): Promise<void> => {
  await question().getByRole('button', { name }).click();
  await question().waitFor({ state: 'detached' });
};
type Field = ReturnType<Page['getByLabel']>;
const project = (place = ''): string => `/projects/${service.project}${place}`;
const pathOf = (): string => new URL(page.url()).pathname;

/** The page that was left is gone, and what it held with it. */
const leftFor = async (place: string): Promise<void> => {
  await page.waitForURL(place);
  await settled(page);
};

/** A dialog that has closed gives the focus back a moment later, and what is typed then is typed elsewhere. */
const replace = async (field: Field, text: string): Promise<void> => {
  do await field.fill(text);
  while ((await field.inputValue()) !== text);
};

/** Forms by hand and of the schema, with a field to type into. */
const FORMS: [name: string, place: () => string, label: string][] = [
  ['settings', () => `/applications/${application}/settings`, 'Description'],
  ['new application', () => project('/new'), 'Repository URL'],
  ['a schedule', () => `/applications/${application}/schedules/new`, 'Name'],
  ['members', () => project('/members'), 'Invite by e-mail'],
  ['a form of the schema', () => '', 'Name'],
  ['processes', () => `/applications/${application}/processes`, 'Instances of web'],
];

/** Follows a link, so that "back" leads to a page of the same document. */
async function go(place: string): Promise<void> {
  await page.evaluate(`{
    const link = document.createElement('a');
    link.href = ${JSON.stringify(place)};
    document.body.append(link);
    link.click();
    link.remove();
  }`);
  await page.waitForURL(place);
  await settled(page);
}

async function open(name: string, place: string): Promise<void> {
  if (name !== 'a form of the schema') return go(place);
  await go(project('/resources/volumes'));
  await page.locator('.page-head').getByRole('button', { name: 'Create volume', exact: true }).click();
  await page.locator('form.generic-form').waitFor();
}

test.each(FORMS)('%s: a link, a key and "back" ask, and "Stay" keeps what was typed', async (name, place, label) => {
  await visit(page, '/search');
  await open(name, place());
  const at = pathOf();
  const field = page.getByLabel(label, { exact: true });
  const text = name === 'processes' ? '7' : 'typed';
  await field.fill(text);
  await page.locator('a.brand').click();
  await question().waitFor();
  if (name === 'settings') expect(await violations(page)).toEqual([]);
  await answer('Stay');
  await page.evaluate('history.back()');
  await question().waitFor();
  expect(pathOf()).toBe(at);
  await answer('Stay');
  await page.locator('h1').first().click();
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await question().waitFor();
  await answer('Stay');
  expect([pathOf(), await field.inputValue()]).toEqual([at, text]);
  // What was typed and taken back is nothing that could be lost.
  await replace(field, name === 'processes' ? '1' : '');
  await page.locator('a.brand').click();
  await leftFor('/');
});

test('what the page changes in a field that nobody has touched asks nothing', async () => {
  await go(`/applications/${application}/processes`);
  await page.getByLabel('Instances of web', { exact: true }).click();
  await page.keyboard.press('End');
  // Behind what the click has put off.
  await page.evaluate(`new Promise((resolve) => setTimeout(() => {
    document.querySelector('form input[type=number]').value = '3';
    resolve();
  }))`);
  await page.locator('a.brand').click();
  await leftFor('/');
});

test('"Leave" leaves, by a link and by "back"', async () => {
  await visit(page, '/search');
  for (const way of ['link', 'back'] as const) {
    await go(project('/members'));
    await go(project('/keys'));
    await page.getByLabel('New project key').fill('CI');
    if (way === 'link') await page.locator('a.brand').click();
    else await page.evaluate('history.back()');
    await question().waitFor();
    await answer('Leave');
    await leftFor(way === 'link' ? '/' : project('/members'));
  }
  // Nothing of it is left: the next page goes unasked.
  await page.locator('a.brand').click();
  await leftFor('/');
});

test('a reload asks in the words of the browser, and only where something is not saved', async () => {
  await visit(page, `/applications/${application}/settings`);
  asked.length = 0;
  await page.reload();
  await settled(page);
  expect(asked).toEqual([]);
  const field = page.getByLabel('Description', { exact: true });
  await field.click();
  await page.keyboard.type('of Ada');
  await page.evaluate('void setTimeout(() => location.reload())');
  while (!asked.length) await page.evaluate('new Promise((resolve) => setTimeout(resolve, 20))');
  expect([asked, await field.inputValue()]).toEqual([['beforeunload'], 'of Ada']);
});

test('after saving nobody is asked: on the page, and where saving leads elsewhere', async () => {
  await page.locator('form', { hasText: 'Description' }).getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').first().waitFor();
  asked.length = 0;
  await page.reload();
  await settled(page);
  expect(await page.getByLabel('Description', { exact: true }).inputValue()).toBe('of Ada');
  await page.locator('a.brand').click();
  await leftFor('/');
  await open('a form of the schema', '');
  await page.getByLabel('Name', { exact: true }).fill('data');
  await page.getByLabel('Size GB', { exact: true }).fill('1');
  await page.locator('form.generic-form').getByRole('button', { name: 'Create volume' }).click();
  await page.locator('h1', { hasText: 'data' }).waitFor();
  expect([asked, await question().count()]).toEqual([[], 0]);
});

test('"Cancel" asks nothing, and neither do the name before a deletion, a search and logging in', async () => {
  await open('a form of the schema', '');
  await page.getByLabel('Name', { exact: true }).fill('data');
  await page.locator('form.generic-form').getByRole('button', { name: 'Cancel' }).click();
  await page.waitForURL(/\/resources\/volumes$/);
  await page.locator('main').getByRole('link', { name: 'data' }).first().click();
  await settled(page);
  await page.locator('.page-head').getByRole('button', { name: 'Delete volume' }).click();
  await page.getByLabel(/^Type /).fill('da');
  await page.locator('a.brand').click();
  await leftFor('/');
  await visit(page, `/applications/${application}/logs`);
  await page.locator('input[type=search]').fill('error');
  await page.locator('a.brand').click();
  await leftFor('/');
});

test('the environment asks too', async () => {
  await visit(page, `/applications/${application}/environment`);
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await page.getByLabel('Name of new variable').fill('COLOUR');
  await page.locator('a.brand').click();
  await question().waitFor();
  await answer('Leave');
  await leftFor('/');
  expect(window.complaints).toEqual([]);
});

test('closing a dialog asks for what was typed in it, and for nothing else', async () => {
  const closing = page.getByRole('dialog', { name: 'Close without saving?' });
  await visit(page, '/');
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByLabel('Description', { exact: true }).fill('of Ada');
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await closing.waitFor();
  expect(await violations(page)).toEqual([]);
  await closing.getByRole('button', { name: 'Keep editing' }).click();
  await closing.waitFor({ state: 'detached' });
  expect(await page.getByLabel('Description', { exact: true }).inputValue()).toBe('of Ada');
  await page.keyboard.press('Escape');
  await closing.getByRole('button', { name: 'Discard' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  // A comparison shows what stays on the page.
  await visit(page, `/applications/${application}/environment`);
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await page.getByLabel('Name of new variable').fill('COLOUR');
  await page.getByRole('button', { name: 'Review and save' }).click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.locator('a.brand').click();
  await answer('Leave');
  await leftFor('/');
  expect(window.complaints).toEqual([]);
});

test('whoever draws a form by itself has no fields that are saved', () => {
  const folder = path.join(ROOT, 'clients/dashboard/src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tsx'));
  const own = files.filter((name) => /<form\b/.test(readFileSync(path.join(folder, name), 'utf8'))).sort();
  const searches = [
    'pages/activity.tsx',
    'pages/application/log_filters.tsx',
    'pages/generic/filters.tsx',
    'pages/installation/activity.tsx',
    'pages/installation/search.tsx',
    // It asks for a plan; the plan is done by a dialog.
    'pages/installation/setup.tsx',
  ];
  expect(own).toEqual([...searches, 'parts/dialog.tsx', 'parts/form.tsx']);
});
