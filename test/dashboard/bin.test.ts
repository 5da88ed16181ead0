/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/bin.tsx clients/dashboard/src/parts/undo.ts */
// The bin of a project in the browser: back by the notice of a delete, from the page, and gone for good.
import { dashboardOf, newPerson, settled, violations, visit, type Window } from '../support/dashboard/chromium';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService({ settings: { RETENTION_OF_DELETED_DAYS: '7' } });
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

const names = async (): Promise<string[]> =>
  (await service.call('GET', '/v2/volumes')).body.data.map(({ name }: { name: string }) => name);

async function deleteVolume(name: string): Promise<void> {
  const { page } = window;
  await service.call('POST', '/v2/volumes', { body: { name, size_gb: 1 } });
  await visit(page, `/projects/${service.project}/volumes`);
  await page.getByRole('button', { name: `Delete ${name}` }).click();
  await page.getByText('It stays in the bin for 7 days').waitFor();
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the volume' }).click();
  await page.getByText(`The volume ${name} was deleted.`).waitFor();
}

test('a deleted volume comes back by the notice', async () => {
  const { page } = window;
  await deleteVolume('photos');
  expect(await names()).toEqual([]);
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('link', { name: 'photos' }).waitFor();
  expect(await names()).toEqual(['photos']);
});

test('the bin lists what was deleted, and restores it under another name where its own is taken', async () => {
  const { page } = window;
  await deleteVolume('papers');
  await service.call('POST', '/v2/volumes', { body: { name: 'papers', size_gb: 1 } });
  await visit(page, `/projects/${service.project}/bin`);
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Restore papers' }).click();
  await page.getByLabel('New name').fill('papers-of-before');
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.getByText('papers-of-before was restored.').waitFor();
  await page.getByText('The bin is empty').waitFor();
  expect((await names()).sort()).toEqual(['papers', 'papers-of-before', 'photos']);
});

test('what is deleted for good is asked for by its name, and is gone', async () => {
  const { page } = window;
  await deleteVolume('drafts');
  await visit(page, `/projects/${service.project}/bin`);
  await page.getByRole('button', { name: 'Delete for good drafts' }).click();
  await page.getByLabel('Type drafts to confirm').fill('drafts');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete for good' }).click();
  await page.getByText('The bin is empty').waitFor();
  expect((await service.call('GET', `/v2/projects/${service.project}/bin`)).body.data).toEqual([]);
});

test('a project is deleted on its page, and restored by the notice and from the list of projects', async () => {
  const { page } = window;
  const { sql, project } = service;
  await sql(`insert into members (project_id, user_id, role) select $1, id, 'owner' from users where email = $2`, [
    ...[(await service.newProject()).id, 'owner@example.org'],
  ]);
  const remove = async (): Promise<void> => {
    await visit(page, '/');
    const [name = ''] = (await page.locator('.card strong').allInnerTexts()).filter((one) => one !== own);
    await page.locator('.card', { hasText: name }).click();
    await page.getByRole('button', { name: 'Delete the project' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('For 7 days, its owners can restore it from the list of projects.').waitFor();
    await dialog.getByLabel(/^Type /).fill(name);
    await dialog.getByRole('button', { name: 'Delete the project' }).click();
    await page.getByText(`The project ${name} was deleted.`).waitFor();
    await page.getByRole('button', { name: `Restore ${name}` }).waitFor();
    expect(await page.locator('.card').count()).toBe(1);
  };
  const own = (await service.call('GET', `/v2/projects/${project}`)).body.name as string;
  await remove();
  expect(await violations(page)).toEqual([]);
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Delete the project' }).waitFor();
  await remove();
  await page.getByRole('button', { name: /^Restore / }).click();
  await page.getByText('was restored.').waitFor();
  await page.locator('.card').nth(1).waitFor();
  expect(await page.getByRole('heading', { name: 'Deleted projects' }).count()).toBe(0);
  await settled(page);
});

test('a page of every field says what brings back what it deletes', async () => {
  const { page } = window;
  const { body: volume } = await service.call('POST', '/v2/volumes', { body: { name: 'notes', size_gb: 1 } });
  const at = `/projects/${service.project}/resources`;
  await visit(page, `${at}/volumes/${volume.id}?do=deleteVolume`);
  await page.getByText('It stays in the bin for 7 days and can be restored from there.').waitFor();
  const { body: zone } = await service.call('POST', '/v2/dns_zones', { body: { name: 'kept.example' } });
  const { body: record } = await service.call('POST', `/v2/dns_zones/${zone.id}/records`, {
    body: { type: 'A', name: 'www', value: '192.0.2.1' },
  });
  await visit(page, `${at}/dns_zones/${zone.id}/records/${record.id}?do=deleteDnsRecord`);
  await page.getByText('It can be taken back in the activity of the project for 7 days.').waitFor();
});
