/** @tier heavy @quarter 3 @covers clients/dashboard/src/parts */
// Protection and undo in the browser.
import { dashboardOf, newPerson, settled, violations, visit, type Window } from '../support/dashboard/chromium';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
let application = '';
dashboardOf(
  async () => {
    service = await startService();
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

test('a change is taken back from the activity', async () => {
  const { page } = window;
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
  const path = `/v2/applications/${application}/env/GREETING`;
  await service.call('PUT', path, { body: { value: 'one' } });
  await service.call('PUT', path, { body: { value: 'two' } });
  await visit(page, `/projects/${service.project}/activity`);
  await page
    .getByRole('button', { name: /^Undo environment variable set GREETING$/i })
    .first()
    .click();
  await page.getByRole('dialog').getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.locator('td, th', { hasText: 'reverted' }).first().waitFor();
  expect(await violations(page)).toEqual([]);
  const { body } = await service.call('GET', `/v2/applications/${application}/env`);
  expect(body.data[0].value).toBe('one');
});

test('protection is turned on in the settings, and a refused deletion leads there', async () => {
  const { page } = window;
  await visit(page, `/applications/${application}/settings`);
  await page.getByRole('button', { name: 'Turn it on' }).click();
  await page.getByText('Deletion protection is on.').waitFor();
  await page.locator('button:disabled', { hasText: 'Delete the application' }).waitFor();
  await service.call('POST', '/v2/volumes', { body: { name: 'uploads', size_gb: 1, deletion_protection: true } });
  await visit(page, `/projects/${service.project}/volumes`);
  await page.getByRole('button', { name: 'Delete uploads' }).click();
  await page.getByLabel('Type uploads to confirm').fill('uploads');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the volume' }).click();
  await page.getByRole('alert').getByText('protected from deletion').waitFor();
  await page.getByRole('link', { name: 'Open its deletion protection' }).click();
  await page.waitForURL(/\/resources\/volumes\/vol_\w+\?do=updateVolume$/);
  await settled(page);
  await page
    .getByLabel(/deletion.protection/i)
    .first()
    .waitFor();
});

test('a project is protected whole on its home', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}`);
  await page.getByRole('button', { name: 'Turn it on' }).click();
  await page.getByText('Deletion protection is on.').waitFor();
  expect(await violations(page)).toEqual([]);
  const { body } = await service.call('GET', `/v2/projects/${service.project}`);
  expect(body.deletion_protection).toBe(true);
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).first().click();
  await page.getByText('Deletion protection is off.').waitFor();
});
