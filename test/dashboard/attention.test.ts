/** @tier heavy @quarter 1 @covers clients/dashboard/src */
// Whether it is well, and in whose words: what needs attention, and names, amounts and times as people say them.
import { visit, type Window } from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { plantedDashboard, type Plant } from '../support/dashboard/plant';
import type { TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard((opened) => void ({ service, planted, window } = opened));

const project = (page = ''): string => `/projects/${service.project}${page}`;
const application = (page = ''): string => `/applications/${planted.application}${page}`;
const database = (page = ''): string => `/databases/${planted.database}${page}`;

test('a disk that is nearly full needs attention, on the homes of the project and of the database', async () => {
  const { page } = window;
  await service.sql(`update databases set status = 'available' where id = $1`, [planted.database]);
  const fill = (share: number): Promise<unknown> =>
    service.sql(`update databases set observed = jsonb_build_object('storage_used_bytes', $2::float8) where id = $1`, [
      ...[planted.database, Math.round(share * 2 ** 30)],
    ]);
  const trouble = page.getByRole('link', { name: 'The storage of the database orders is 85 % full.' });
  for (const place of [project(), database()]) {
    await fill(0.5);
    await keepsTheRules(page, place);
    await page.getByText('512 MB of 1 GB').first().waitFor();
    expect(await trouble.count()).toBe(0);
    await fill(0.855);
    await visit(page, place);
    await trouble.waitFor();
  }
});

test('an application whose instances cannot start needs attention with the reason', async () => {
  const { page } = window;
  const reason = 'Process type web: no instance is running. The app exited with code 1 after 20 seconds.';
  await service.sql('update applications set status_reason = $2 where id = $1', [planted.application, reason]);
  for (const place of [project(), application()]) {
    await visit(page, place);
    await page.getByRole('link', { name: `shop: ${reason}` }).waitFor();
    expect(await page.getByText('Nothing needs attention.').count()).toBe(0);
  }
  await service.sql('update applications set status_reason = null where id = $1', [planted.application]);
});

test('sizes, regions, engines and what a page lies below have their names', async () => {
  const { page } = window;
  await visit(page, application());
  await page.getByText(/^Small, 512\sMB$/).waitFor();
  await page.getByText(/^Local$/).waitFor();
  await visit(page, database());
  await page.getByText('PostgreSQL', { exact: true }).waitFor();
  await page.getByText(/^Sunday at/).waitFor();
  await visit(page, project(`/resources/applications/${planted.application}/env`));
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'shop', exact: true }).waitFor();
});

test('requests and tokens of AI models are no bytes, and no column is empty', async () => {
  const { page } = window;
  await service.sql(
    `insert into ai_usage (project_id, date, model_id, requests, input_tokens, output_tokens, errors)
      values ($1, current_date, 'gpt-4o-mini', 40, 12000, 6800, 1)`,
    [service.project],
  );
  await keepsTheRules(page, project('/resources/project/ai_usage'));
  const [row] = await page.locator('tbody tr').allInnerTexts();
  expect(row).toMatch(/\b40\s+12,000\s+6,800\s+1$/);
  await visit(page, project('/resources/applications'));
  const titles = await page.locator('thead th').allInnerTexts();
  for (const [index, title] of titles.entries()) {
    const cells = await page.locator(`tbody tr > :nth-child(${index + 1})`).allInnerTexts();
    expect([title, cells.some((cell) => cell.trim() !== '–')]).toEqual([title, true]);
  }
});

test('a session has the name of its browser, and times have 24 hours', async () => {
  const { page } = window;
  await visit(page, '/settings');
  await page
    .getByText(/^Chrome on \w+$/)
    .first()
    .waitFor();
  const window_of_day = { earliest: '2026-01-02T15:04:05Z', latest: '2026-01-03T15:04:05Z' };
  await service.sql('update databases set point_in_time_window = $2 where id = $1', [
    ...[planted.database, JSON.stringify(window_of_day)],
  ]);
  await visit(page, database('/restore'));
  const text = await page.locator('main').innerText();
  expect(text).toMatch(/3 Jan 2026, \d\d:\d\d:05/);
  expect(text).not.toMatch(/\b[AP]M\b|\dT\d/);
});
