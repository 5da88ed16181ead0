/** @tier heavy @quarter 4 @covers clients/dashboard/src/pages/application/settings.tsx */
// The page Settings of an application saves what a person has changed, and makes no default a choice of theirs.
import { dashboardOf, newPerson, visit, type Page } from '../support/dashboard/chromium';
import { startService, type TestService } from '../support/service';

let service: TestService;
let page: Page;
let id: string;

dashboardOf(
  async () => {
    service = await startService();
    await newPerson(service, 'owner@example.org', 'owner');
    const body = { name: 'shop', preset: 'static-site' };
    id = (await service.call('POST', '/v2/applications', { body })).body.id;
    return service;
  },
  (window) => void (page = window.page),
);

async function save(): Promise<unknown> {
  const form = page.locator('section', { hasText: 'Build and run' });
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('Saved.').waitFor();
  return (await service.sql('select settings from applications where id = $1', [id]))[0].settings;
}

test('a port and a health check that are not set stay so, are set, and are unset', async () => {
  await visit(page, `/applications/${id}/settings`);
  const [port, check] = [page.getByLabel('Port'), page.getByLabel('Health check')];
  expect([await port.inputValue(), await check.inputValue()]).toEqual(['', '']);
  expect(await port.getAttribute('placeholder')).toBe('detected');

  await page.getByLabel('Build command').fill('make');
  expect(await save()).toEqual({ build: { build_command: 'make' } });

  await port.fill('8080');
  await check.selectOption('tcp');
  const set = { build: { build_command: 'make' }, http: { port: 8080 }, health_check: { type: 'tcp' } };
  expect(await save()).toEqual(set);
  await visit(page, `/applications/${id}/settings`);
  expect(await save()).toEqual(set);

  await port.fill('');
  await check.selectOption('');
  await page.getByLabel('Build command').fill('');
  expect(await save()).toEqual({});
});
