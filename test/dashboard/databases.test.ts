/** @tier heavy @quarter 1 @covers clients/dashboard/src/pages/database */
// Databases in the browser: users whose passwords are shown once, a point in time by keyboard, metrics.
import { dashboardOf, openWindow, signIn, violations, visit, type Window } from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { plant, type Plant } from '../support/dashboard/plant';
import { startService, type TestService } from '../support/service';

const DAY_MS = 86_400_000;

let service: TestService;
let planted: Plant;
let window: Window;
let period: { earliest: string; latest: string };
dashboardOf(
  async () => {
    service = await startService();
    planted = await plant(service);
    const latest = Math.floor(Date.now() / 1_000) * 1_000;
    period = { earliest: new Date(latest - 3 * DAY_MS).toISOString(), latest: new Date(latest).toISOString() };
    await service.sql(`update databases set status = 'available', point_in_time_window = $2 where id = $1`, [
      planted.database,
      JSON.stringify(period),
    ]);
    return service;
  },
  (opened) => void (window = opened),
  { timezoneId: 'America/New_York' },
);

const database = (page = ''): string => `/databases/${planted.database}${page}`;

test('a point in time is chosen by keyboard, and a copy is restored to it', async () => {
  const { page } = window;
  await keepsTheRules(page, database('/restore'));
  const slider = page.getByLabel('Point in time', { exact: true });
  expect(Number(await slider.inputValue()) * 1_000).toBe(Date.parse(period.latest));
  await slider.press('Home');
  expect(Number(await slider.inputValue()) * 1_000).toBe(Date.parse(period.earliest));
  await slider.press('ArrowRight');
  await slider.press('ArrowRight');
  await page.getByRole('button', { name: '1 hour later' }).click();
  const chosen = Date.parse(period.earliest) + 3_720_000;
  expect(Number(await slider.inputValue()) * 1_000).toBe(chosen);
  expect(await slider.getAttribute('aria-valuetext')).toMatch(/3 days ago|2 days ago/);
  await page.getByRole('button', { name: '1 hour earlier' }).click();
  await page.getByRole('button', { name: '1 hour earlier' }).click();
  expect(Number(await slider.inputValue()) * 1_000).toBe(Date.parse(period.earliest));
  await page.getByRole('button', { name: '1 hour later' }).click();
  await page.getByRole('button', { name: 'Restore into a copy' }).click();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('heading', { name: /^orders-\d+$/ }).waitFor();
  const [, copy = ''] = /databases\/(db_\w+|\w+)$/.exec(new URL(page.url()).pathname) ?? [];
  const { restore_from } = (await service.call('GET', `/v2/databases/${copy}`)).body;
  expect(restore_from.database_id).toBe(planted.database);
  expect(Date.parse(restore_from.point_in_time)).toBe(Date.parse(period.earliest) + 3_600_000);
});

test('replacing the data asks for the name', async () => {
  const { page } = window;
  await visit(page, database('/restore'));
  await page.getByRole('button', { name: 'Replace the data' }).click();
  const dialog = page.getByRole('dialog');
  const button = dialog.getByRole('button', { name: 'Replace the data' });
  expect(await button.getAttribute('disabled')).not.toBeNull();
  await dialog.getByLabel(/Type orders/).fill('orders');
  await button.click();
  await page.waitForURL(new RegExp(`${planted.database}$`));
  expect((await service.call('GET', `/v2/databases/${planted.database}`)).body.status).toBe('restoring');
  await service.sql(`update databases set status = 'available' where id = $1`, [planted.database]);
});

test('a time that the API refuses is said in its words', async () => {
  const { page } = window;
  await visit(page, database('/restore'));
  await page.getByLabel('Point in time', { exact: true }).press('Home');
  const later = { earliest: new Date(Date.parse(period.earliest) + DAY_MS).toISOString(), latest: period.latest };
  await service.sql('update databases set point_in_time_window = $2 where id = $1', [
    planted.database,
    JSON.stringify(later),
  ]);
  await page.getByRole('button', { name: 'Restore into a copy' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page
    .getByRole('dialog')
    .getByRole('alert')
    .getByText(/point in time/i)
    .waitFor();
});

test('metrics have a chart for each group', async () => {
  const { page } = window;
  await keepsTheRules(page, database('/metrics'));
  expect(await page.locator('figure.chart').count()).toBe(7);
});

test('users are listed, and a refused name stands at its field', async () => {
  const { page } = window;
  await keepsTheRules(page, database('/users'));
  await page.getByLabel('Add a user').fill('Not A Name');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.locator('.field small.problem').first().waitFor();
});

test('an extension that needs a superuser is asked for, and a refused one says why', async () => {
  const { page } = window;
  await keepsTheRules(page, database('/extensions'));
  await page.getByText('It connects from the server to other addresses.').first().waitFor();
  await page.getByRole('button', { name: 'Enable earthdistance' }).click();
  await page.getByRole('row', { name: /earthdistance.*enabling/ }).waitFor();
});

test('a dump is imported, and what was left out is said', async () => {
  const { page } = window;
  await keepsTheRules(page, database('/import'));
  const buffer = Buffer.from('create table imported (i int);\nalter table imported owner to alice;\n');
  await page.locator('input[type=file]').setInputFiles([{ name: 'a.sql', mimeType: 'text/plain', buffer }]);
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel' }).waitFor();
  await service.sql(`update database_imports set status = 'completed', tables = $1, not_taken_over = $2`, [
    JSON.stringify([{ name: 'public.imported', rows_read: 3, rows: 3 }]),
    JSON.stringify([{ kind: 'owner', name: 'alice', reason: 'What is imported belongs to the owner.' }]),
  ]);
  await page.getByRole('cell', { name: 'alice' }).waitFor();
  await page.getByText('completed').first().waitFor();
});

test('a viewer sees users and no control, and is told who restores', async () => {
  const viewer = await openWindow(service);
  const { page } = viewer;
  await signIn(viewer, 'viewer@example.org', database('/users'));
  expect(await page.getByRole('button', { name: 'Add', exact: true }).count()).toBe(0);
  await visit(page, database('/restore'));
  await page.getByText('Developers and owners of the project restore databases.').waitFor();
  expect(viewer.complaints).toEqual([]);
});

test('nothing was asked elsewhere, and the policy of the page was never broken', () => {
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});
