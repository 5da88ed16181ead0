/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/bin.tsx clients/dashboard/src/parts/undo.ts */
// The bin of a project in the browser: back by the notice of a delete, from the page, and gone for good.
import { dashboardOf, newPerson, violations, visit, type Window } from '../support/dashboard/chromium';
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
