/** @tier heavy @quarter 3 @covers clients/dashboard/src/pages/stack.tsx */
// A project as a file in the browser: planned, refused with its lines, applied, deleted by names, and exported.
import * as fs from 'node:fs';
import { dashboardOf, newPerson, violations, visit, type Window } from '../support/dashboard/chromium';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService();
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

const picture = async (name: string): Promise<void> => {
  const folder = process.env.PICTURES;
  if (folder) await window.page.screenshot({ path: `${folder}/stack-${name}.png`, fullPage: true });
};
const names = async (): Promise<string[]> =>
  (await service.call('GET', '/v2/volumes')).body.data.map(({ name }: { name: string }) => name);

test('a file is planned, and applied after a look at it', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/file`);
  expect(await violations(page)).toEqual([]);
  await page
    .getByLabel('File', { exact: true })
    .fill('volumes: { uploads: { size_gb: 1 } }\napplications: { shop: { variables: { KEY: { secret: true } } } }\n');
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await page.getByRole('cell', { name: 'size_gb: 1' }).waitFor();
  await page.getByText('of shop is not set yet').waitFor();
  await page.getByText('Price a month').waitFor();
  expect(await violations(page)).toEqual([]);
  await picture('plan');
  expect(await names()).toEqual([]);
  await page.getByRole('button', { name: 'Apply …' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await page.getByText('Made 2 changes.').waitFor();
  expect(await names()).toEqual(['uploads']);
});

test('what is refused is said with its line, and cannot be applied', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/file`);
  await page.getByLabel('File', { exact: true }).fill('applications:\n  shop:\n    application_type: huge\n');
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await page.getByText('line 3,').waitFor();
  expect(await page.getByRole('button', { name: 'Apply …' }).count()).toBe(0);
  await picture('refused');
  await page.getByLabel('File', { exact: true }).fill('applications: [\n');
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await page.getByText(/line \d+: /).waitFor();
});

test('what has data is deleted where its name is typed in', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/file`);
  await page.getByLabel('File', { exact: true }).fill('applications: { shop: {} }\n');
  await page.getByLabel('Delete what exists and is not in the file').check();
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await page.getByText('delete, with its data').waitFor();
  await page.getByRole('button', { name: 'Apply …' }).click();
  const dialog = page.getByRole('dialog');
  expect(await page.locator('dialog button[type=submit]:disabled').count()).toBe(1);
  await dialog.getByLabel('Type uploads to delete it with its data').fill('uploads');
  await picture('confirm');
  await dialog.getByRole('button', { name: 'Apply' }).click();
  await page.getByText('Made 1 change.').waitFor();
  expect(await names()).toEqual([]);
});

test('what exists is exported, and an uploaded file is planned', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/file`);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export what exists' }).click(),
  ]);
  const file = await download.path();
  expect(fs.readFileSync(file, 'utf8')).toContain('shop:');
  await page.getByLabel('A file of this computer').setInputFiles(file);
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await page.getByText('Everything is as the file says.').waitFor();
});
