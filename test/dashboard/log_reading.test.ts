/** @tier heavy @quarter 1 @covers clients/dashboard/src/pages/application clients/dashboard/src/parts/log_view.tsx */
// Reading a log: a range of times, the lines around a match and their address, wrapping, pausing, a file of it.
import { readFileSync } from 'node:fs';
import { openWindow, screenshot, signIn, violations, visit, type Window } from '../support/dashboard/chromium';
import { plantedDashboard, type Plant } from '../support/dashboard/plant';
import type { TestService } from '../support/service';

const LONG = `${'long '.repeat(80)}end`;
const HOUR_MS = 3_600_000;

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard(async (opened) => {
  ({ service, planted, window } = opened);
  // Of two hours ago: 300 lines, the one in the middle has a word of its own.
  const start = new Date(Date.now() - 2 * HOUR_MS);
  await service.sql(
    'select make_observation_day((now() - make_interval(hours => n))::date) from generate_series(0, 48) n',
  );
  await service.sql(
    `insert into log_lines (at, resource_id, project_id, application_id, source, level, message, process_type)
      select $3::timestamptz + make_interval(secs => n / 10.0), $2, $1, $2, 'app', 'info',
        case when n = 150 then 'needle of the haystack' when n = 151 then $4 else 'straw ' || n end, 'web'
      from generate_series(1, 300) n`,
    [service.project, planted.application, start.toISOString(), LONG],
  );
});

const logs = (query = ''): string => `/applications/${planted.application}/logs${query}`;
const line = (text: string) => window.page.locator('.log-line', { hasText: text });

async function write(message: string): Promise<void> {
  await service.sql(
    `insert into log_lines (at, resource_id, project_id, application_id, source, level, message, process_type)
      values (now(), $2, $1, $2, 'app', 'info', $3, 'web')`,
    [service.project, planted.application, message],
  );
}

test('from a match to the lines around it, whose address is for others too, and back to the search', async () => {
  const { page } = window;
  await visit(page, logs('?search=needle'));
  await line('needle of the haystack').waitFor();
  expect(await line('straw').count()).toBe(0);
  await line('needle').getByRole('link').click();
  await line('straw 149').waitFor();
  await page.locator('.log-line.picked', { hasText: 'needle' }).waitFor();
  expect(await page.locator('.log-line.picked').count()).toBe(1);
  await line('straw 152').waitFor();
  expect(await violations(page)).toEqual([]);
  await screenshot(page, 'try-log-context');
  await page.reload();
  await page.locator('.log-line.picked', { hasText: 'needle' }).waitFor();
  await page.getByRole('button', { name: 'Back to the log' }).click();
  await line('needle of the haystack').waitFor();
  expect(await line('straw').count()).toBe(0);
});

test('a line that is gone is said to be gone, and a time that is none is no error of the page', async () => {
  const { page } = window;
  await visit(page, logs(`?line=${new Date(Date.now() - HOUR_MS).toISOString()}_abc`));
  await page.getByText('The line is not kept any more').waitFor();
  await visit(page, logs('?line=nonsense'));
  await page.locator('.notice.bad').waitFor();
});

test('a range of times has its lines and no others, and its file has all of them', async () => {
  const { page } = window;
  const [since, until] = [-3, -1].map((hours) => new Date(Date.now() + hours * HOUR_MS).toISOString());
  await visit(page, logs(`?range=between&since=${since}&until=${until}`));
  await line('straw 300').waitFor();
  expect(await line('of the shop').count()).toBe(0);
  await page.getByText('A range of the past').waitFor();
  await page.getByText('300 lines', { exact: true }).waitFor();
  expect(await page.getByLabel('From', { exact: true }).inputValue()).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d/);
  expect(await violations(page)).toEqual([]);
  await screenshot(page, 'try-log-range');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download' }).click(),
  ]);
  const text = readFileSync(await download.path(), 'utf8');
  expect(text.trimEnd().split('\n')).toHaveLength(300);
  expect(text).toMatch(/straw 149\n.* web needle of the haystack\n/);
  await page.getByLabel('Time').selectOption('1h');
  await line('of the shop').first().waitFor();
  expect(await line('straw').count()).toBe(0);
});

test('on a phone the filters fold behind one button, which says how many are set', async () => {
  const { page } = window;
  await page.setViewportSize({ width: 390, height: 800 });
  await visit(page, logs());
  const level = page.getByLabel('Level');
  const button = page.getByRole('button', { name: 'Filters' });
  await button.waitFor();
  expect(await level.boundingBox()).toBeNull();
  const form = page.getByRole('form', { name: 'Lines to show' });
  const rows = ['Search', 'Filters'].map((name) => form.getByRole('button', { name }).boundingBox());
  const [search, filters] = await Promise.all(rows);
  expect(search?.y).toBe(filters?.y);
  await button.click();
  await level.selectOption('error');
  await page.getByRole('button', { name: 'Filters (1)' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await button.waitFor({ state: 'hidden' });
  expect(await level.boundingBox()).not.toBeNull();
});

test('a long line is wrapped, and the choice stays', async () => {
  const { page } = window;
  await visit(page, logs('?search=long long'));
  const height = async (): Promise<number> => (await line('long').boundingBox())?.height ?? 0;
  await line('long').waitFor();
  expect(await height()).toBe(24);
  await page.getByRole('button', { name: 'Wrap lines' }).click();
  await page.locator('.log-wrapped').waitFor();
  expect(await height()).toBeGreaterThan(40);
  await page.reload();
  await page.locator('.log-wrapped .log-line', { hasText: 'long' }).waitFor();
  await screenshot(page, 'try-log-wrapped');
  await page.getByRole('button', { name: 'Wrap lines' }).click();
  await page.locator('.log-wrapped').waitFor({ state: 'detached' });
});

test('a line of another day says which, and a phone breaks long lines by itself', async () => {
  await service.sql(
    `insert into log_lines (at, resource_id, project_id, application_id, source, level, message, process_type)
      values (now() - interval '30 hours', $2, $1, $2, 'app', 'info', 'of yesterday', 'web')`,
    [service.project, planted.application],
  );
  const phone = await openWindow(service, { viewport: { width: 390, height: 800 } });
  await signIn(phone, 'owner@example.org', logs('?search=yesterday'));
  const found = phone.page.locator('.log-wrapped .log-line', { hasText: 'of yesterday' });
  await found.waitFor();
  expect(await found.locator('time').innerText()).toMatch(/^\d\d \w{3,4} \d\d:\d\d:\d\d\.\d{3}$/);
  expect(await violations(phone.page)).toEqual([]);
  expect(phone.complaints).toEqual([]);
});

test('a pause holds the lines back, and says how many', async () => {
  const { page } = window;
  await visit(page, logs());
  await page.locator('.log-head .status', { hasText: 'live' }).waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await write('written in the pause');
  await page.getByRole('button', { name: 'Resume, 1 new' }).waitFor();
  expect(await line('written in the pause').count()).toBe(0);
  await page.getByRole('button', { name: 'Resume, 1 new' }).click();
  await line('written in the pause').waitFor();
  expect(window.complaints).toEqual([]);
});
