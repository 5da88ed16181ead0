/** @tier heavy @quarter 4 @covers clients/dashboard/src/pages/runs clients/dashboard/src/pages/schedules */
// Runs and schedules in the browser: lists, forms, refusals at their fields, and what a viewer sees.
import { openWindow, signIn, violations, visit, type Window } from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { MARKUP, plantedDashboard, type Plant } from '../support/dashboard/plant';
import type { TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard((opened) => void ({ service, planted, window } = opened));

const application = (page = ''): string => `/applications/${planted.application}${page}`;

test('a schedule is explained while it is typed, created, run by hand, disabled and deleted', async () => {
  const { page } = window;
  await keepsTheRules(page, application('/schedules'));
  await page.getByRole('button', { name: 'New schedule' }).click();
  await page.getByLabel('Name', { exact: true }).fill('nightly');
  await page.getByLabel('Command', { exact: true }).fill(`echo "${MARKUP}"`);
  await page.getByLabel('When (cron)').fill('30 2 * * MON-FRI');
  await page.getByLabel('Time zone').fill('Europe/Berlin');
  const meaning = page.locator('[data-testid=meaning]');
  await meaning.getByText(/At 02:30, Monday through Friday/).waitFor();
  expect(await meaning.locator('li').count()).toBe(3);
  expect(await meaning.innerText()).toMatch(/02:30 (CET|CEST|GMT\+[12])/);
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByRole('link', { name: 'nightly' }).waitFor();
  const { data } = (await service.call('GET', `/v2${application('/schedules')}`)).body;
  expect(data[0]).toMatchObject({ name: 'nightly', cron: '30 2 * * MON-FRI', time_zone: 'Europe/Berlin' });
  const shown = await page.locator('.row time').first().getAttribute('datetime');
  expect(Date.parse(shown as string)).toBe(Date.parse(data[0].next_run_at));
  await keepsTheRules(page, application('/schedules'));
  await page.getByRole('button', { name: 'Disable nightly' }).click();
  await page.getByText('Will not run.').waitFor();
  await page.getByRole('button', { name: 'Enable nightly' }).click();
  await page.getByRole('button', { name: 'Run now nightly' }).click();
  await page.waitForURL(/\/runs\/run_\w+$/);
  await visit(page, application(`/schedules/${data[0].id}`));
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No schedules yet').waitFor();
});

test('the next times of the form are those of the API', async () => {
  const { page } = window;
  for (const [cron, zone] of [
    ['0 0 L * *', 'UTC'],
    ['0 0 1,15 * 5', 'America/New_York'],
    ['@weekly', 'Asia/Tokyo'],
    // The clock has no 02:30 on that Sunday: it is due at 03:00.
    ['30 2,14 * 3 SUN#L', 'Europe/Berlin'],
  ] as const) {
    const body = { name: `n${Math.abs(hash(cron))}`, cron, time_zone: zone, command: 'true' };
    const made = await service.call('POST', `/v2${application('/schedules')}`, { body });
    await visit(page, application('/schedules'));
    const row = page.locator('.row', { hasText: body.name });
    const times = await row.locator('time').first().getAttribute('datetime');
    expect(Date.parse(times as string)).toBe(Date.parse(made.body.next_run_at));
    await visit(page, application(`/schedules/${made.body.id}`));
    const shown = page.locator('[data-testid=meaning] li');
    expect(await shown.count()).toBe(3);
    const local = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: zone });
    expect(await shown.first().innerText()).toContain(local.format(new Date(made.body.next_run_at)));
  }
  await keepsTheRules(page, application('/schedules/new'));
});

function hash(text: string): number {
  return [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 100_000, 7);
}

test('what the API refuses stands at its field', async () => {
  const { page } = window;
  await visit(page, application('/schedules/new'));
  await page.getByLabel('Name', { exact: true }).fill('Not A Name');
  await page.getByLabel('Command', { exact: true }).fill('true');
  await page.getByLabel('When (cron)').fill('every monday');
  await page.getByText('Not a valid cron expression and time zone.').waitFor();
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.locator('.field small.problem').first().waitFor();
  expect(await page.getByLabel('When (cron)').getAttribute('aria-invalid')).toBe('true');
  expect(await page.locator('.field', { hasText: 'When (cron)' }).innerText()).toMatch(/five fields/);
  expect(await violations(page)).toEqual([]);
});

test('a run is started with a variable, listed, opened and canceled', async () => {
  const { page } = window;
  await keepsTheRules(page, application('/runs/new'));
  await page.getByLabel('Command', { exact: true }).fill(`echo ${MARKUP}`);
  await page.getByLabel('Additional variables').fill('not a variable');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('alert').first().waitFor();
  await page.getByLabel('Additional variables').fill('BATCH=a=b');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL(/\/runs\/run_\w+$/);
  const place = new URL(page.url()).pathname;
  await page.getByText('BATCH').waitFor();
  await keepsTheRules(page, place);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.locator('.headline .status', { hasText: 'canceled' }).waitFor();
  await keepsTheRules(page, application('/runs'));
  await page.getByText(`echo ${MARKUP}`).first().waitFor();
  expect(await page.locator('main img').count()).toBe(0);
  await page.getByLabel('Status', { exact: true }).selectOption('succeeded');
  await page.getByText('No run has this status').waitFor();
});

test('a viewer sees runs and schedules, and no control', async () => {
  const viewer = await openWindow(service);
  const { page } = viewer;
  await signIn(viewer, 'viewer@example.org', application('/runs'));
  expect(await page.getByRole('button', { name: 'New run' }).count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Open a shell' }).count()).toBe(0);
  await visit(page, application('/schedules'));
  expect(await page.getByRole('button', { name: /Run now/ }).count()).toBe(0);
  await visit(page, application('/runs/new'));
  await page.getByText('Your role in this project may not start runs.').waitFor();
  expect(viewer.complaints).toEqual([]);
});

test('nothing was asked elsewhere, and the policy of the page was never broken', () => {
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});
