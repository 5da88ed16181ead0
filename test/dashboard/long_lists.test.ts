/** @tier heavy @quarter 1 @covers clients/dashboard/src/pages/project.tsx clients/dashboard/src/pages/activity.tsx */
// More than a page holds, in the browser: applications of a project, and what is looked for in its activity.
import { dashboardOf, newPerson, visit, type Window } from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { startService, type TestService } from '../support/service';

const COUNT = 53;
const OF_A_PAGE = 50;

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService({ settings: { QUOTAS: JSON.stringify({ applications: COUNT }) } });
    for (let number = 1; number <= COUNT; number += 1) {
      const body = { name: `app-${String(number).padStart(2, '0')}`, source: { type: 'upload' } };
      expect((await service.call('POST', '/v2/applications', { body })).status).toBe(201);
    }
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

test('the home of a project goes on to its next applications, and back', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}`);
  const names = page.getByRole('region', { name: 'Applications' }).locator('th a');
  await page.getByRole('link', { name: 'app-01' }).waitFor();
  expect(await names.count()).toBe(OF_A_PAGE);
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.getByRole('link', { name: 'app-53' }).waitFor();
  expect([await names.count(), await names.first().innerText()]).toEqual([COUNT - OF_A_PAGE, 'app-51']);
  await page.getByRole('button', { name: 'First page' }).click();
  await page.getByRole('link', { name: 'app-01' }).waitFor();
  expect(await names.count()).toBe(OF_A_PAGE);
});

test('the activity shows what is looked for, page by page, and all of it again', async () => {
  const { page } = window;
  await keepsTheRules(page, `/projects/${service.project}/activity`);
  const rows = page.getByRole('region', { name: 'Activity' }).locator('tbody tr');
  await page.getByLabel('Kind').fill('application');
  await page.getByLabel('Action').fill('application.created');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.getByRole('button', { name: 'First page' }).waitFor();
  await rows.nth(COUNT - OF_A_PAGE).waitFor({ state: 'detached' });
  expect(await rows.count()).toBe(COUNT - OF_A_PAGE);
  await page.getByLabel('To').fill('2020-01-01T00:00');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('Nothing of that kind has happened.').waitFor();
  for (const label of ['Kind', 'Action', 'To']) await page.getByLabel(label).fill('');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByRole('cell', { name: 'application created' }).first().waitFor();
});
