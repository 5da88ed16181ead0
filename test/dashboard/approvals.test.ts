/** @tier heavy @quarter 4 @covers clients/dashboard/src/pages/approvals */
// Calls that wait for a second person, and a key that is paused, in the browser.
import { dashboardOf, newPerson, openWindow, signIn, visit, type Window } from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService({ settings: { DESTROYING_CALLS_PER_MINUTE: '3' } });
    await newPerson(service, 'owner@example.org', 'owner');
    await newPerson(service, 'second@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

const project = (page: string): string => `/projects/${service.project}/${page}`;

test('an owner asks in the dashboard, another one approves, and the call is made', async () => {
  const { page } = window;
  await service.call('POST', '/v2/volumes', { body: { name: 'uploads', size_gb: 1 } });
  await keepsTheRules(page, project('approvals'));
  await page.getByText('No calls yet').waitFor();
  await page.getByLabel('Calls that destroy').selectOption('all');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The required approvals were changed.').waitFor();
  await visit(page, project('volumes'));
  await page.getByRole('button', { name: 'Delete uploads' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').fill('uploads');
  await dialog.getByRole('button', { name: /^Delete/ }).click();
  await dialog.getByText('An owner of the project must approve this call first.').waitFor();
  const where = await dialog.getByRole('link', { name: 'See the approval' }).getAttribute('href');
  await page.keyboard.press('Escape');

  const second = await openWindow(service);
  await signIn(second, 'second@example.org', project(''));
  await second.page.getByRole('link', { name: 'A call waits for an approval.' }).click();
  await second.page.getByRole('link', { name: 'Delete a volume' }).click();
  await second.page.waitForURL(`**${where}`);
  await keepsTheRules(second.page, String(where));
  await second.page.getByText('1 volume', { exact: true }).waitFor();
  await second.page.getByRole('button', { name: 'Approve' }).click();
  await second.page.getByText('has approved this call').waitFor();
  expect(second.complaints).toEqual([]);

  await visit(page, project('volumes'));
  await page.getByRole('button', { name: 'Delete uploads' }).click();
  await dialog.getByRole('textbox').fill('uploads');
  await dialog.getByRole('button', { name: /^Delete/ }).click();
  await dialog.waitFor({ state: 'detached' });
  const { body } = await service.call('GET', '/v2/volumes');
  expect(body.data).toEqual([]);
});

test('a key that is paused stands in the list, and goes on', async () => {
  const { page } = window;
  const key = await service.mintKey({ kind: 'project' });
  for (let i = 0; i < 4; i++) await service.call('DELETE', '/v2/volumes/vol_01h455vb4pex5vsknk084sn02q', { key });
  expect((await service.call('GET', '/v2/volumes', { key })).body.code).toBe('key_paused');
  await keepsTheRules(page, project('keys'));
  await page.getByRole('row', { name: /Test key paused/ }).waitFor();
  await page.getByRole('button', { name: 'Let it go on Test key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Let it go on' }).click();
  await page.getByText('The key Test key works again.').waitFor();
  expect((await service.call('GET', '/v2/volumes', { key })).status).toBe(200);
});
