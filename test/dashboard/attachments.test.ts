/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/attachments clients/dashboard/src/pages/application */
// A database is attached and detached from the page of either side, and what runs says what it does not have yet.
import { screenshot, violations, visit, type Window } from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { plantedDashboard, type Plant } from '../support/dashboard/plant';
import type { TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard((opened) => void ({ service, planted, window } = opened));

const environment = (): string => `/applications/${planted.application}/environment`;
const keys = async (): Promise<string[]> =>
  (await service.call('GET', `/v2/applications/${planted.application}/env`)).body.data.map(
    ({ key }: { key: string }) => key,
  );
const NAMES = ['URL', 'HOST', 'PORT', 'USER', 'PASSWORD', 'NAME'].map((part) => `DATABASE_${part}`);

test('from the application: what will be set is shown before, and what waits for a restart after', async () => {
  const { page } = window;
  await service.sql(`update databases set status = 'available' where id = $1`, [planted.database]);
  await visit(page, environment());
  await page.getByRole('button', { name: 'Attach a database' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Database', { exact: true }).selectOption({ label: 'orders' });
  for (const name of NAMES) await dialog.getByText(name, { exact: true }).waitFor();
  expect(await violations(page)).toEqual([]);
  await screenshot(page, 'try-attach');
  const restart = dialog.getByLabel(/^Restart shop now/);
  if (await restart.count()) await restart.uncheck();
  await dialog.getByRole('button', { name: 'Attach', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  const attached = page.getByRole('list', { name: 'Attached databases' });
  await attached.getByRole('link', { name: 'orders' }).waitFor();
  await page.getByLabel('Value of DATABASE_URL').waitFor();
  expect(await keys()).toEqual(expect.arrayContaining(NAMES));
  await page.locator('.pending-variables', { hasText: 'DATABASE_HOST' }).waitFor();
  await screenshot(page, 'try-environment');
  await keepsTheRules(page, environment());
});

test('a shell is opened with a word of what it does not have', async () => {
  const { page } = window;
  await visit(page, `/applications/${planted.application}/runs`);
  await page.getByText('Runs and shells have the variables of what runs now.').waitFor();
});

test('from the database: detached with a question, attached again under another prefix', async () => {
  const { page } = window;
  await keepsTheRules(page, `/databases/${planted.database}/connect`);
  const attached = page.getByRole('list', { name: 'Applications with the database' });
  await attached.getByRole('link', { name: 'shop' }).waitFor();
  await screenshot(page, 'try-connect');
  await attached.getByRole('button', { name: 'Detach shop' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/DATABASE_URL.* are removed/).waitFor();
  await screenshot(page, 'try-detach');
  await dialog.getByRole('button', { name: 'Detach', exact: true }).click();
  await page.getByText('The database is attached to no application.').waitFor();
  expect((await keys()).filter((key) => key.startsWith('DATABASE'))).toEqual([]);
  await page.getByRole('button', { name: 'Attach to an application' }).click();
  await dialog.getByLabel('Application', { exact: true }).selectOption({ label: 'shop' });
  await dialog.getByLabel('Prefix of the variables').fill('orders');
  await dialog.getByRole('button', { name: 'Attach', exact: true }).click();
  // In the words of the API, where it stands.
  await dialog.locator('.problem').waitFor();
  await dialog.getByLabel('Prefix of the variables').fill('ORDERS');
  await dialog.getByRole('button', { name: 'Attach', exact: true }).click();
  await attached.getByText('ORDERS_URL').waitFor();
  expect(await keys()).toContain('ORDERS_PASSWORD');
});

test('sizes are in their order, with memory, processors and price', async () => {
  const { page } = window;
  await keepsTheRules(page, `/applications/${planted.application}/processes`);
  await page.getByText(/^Size and command/).click();
  const labels = await page.getByLabel('Size of web').locator('option').allInnerTexts();
  const memory = labels.slice(1).map((label) => {
    const [, size = '', unit] = /: (\d+)\s(MB|GB), [\d.]+ CPU, /.exec(label) ?? [];
    return Number(size) * (unit === 'GB' ? 1_024 : 1);
  });
  expect(memory.length).toBeGreaterThan(2);
  expect(memory).toEqual([...memory].sort((a, b) => a - b));
  await screenshot(page, 'try-processes');
  await page.getByLabel('Size of web').selectOption({ label: labels[1] as string });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved. It counts from the next restart').waitFor();
  const { data } = (await service.call('GET', `/v2/applications/${planted.application}/processes`)).body;
  const types = (await service.call('GET', '/v2/application_types')).body.data as { id: string; memory_mb: number }[];
  expect(types.find(({ id }) => id === data[0].application_type)?.memory_mb).toBe(memory[0]);
  expect(window.complaints).toEqual([]);
});
