/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/database/deleted_backups.tsx */
// Backups of deleted databases in the browser: below the list of databases, and back into a new one.
import { dashboardOf, newPerson, violations, visit, type Window } from '../support/dashboard/chromium';
import { scheduled, useServiceOfBackups } from '../support/databases/database_backup_cases';
import { database, describeHost } from '../support/databases/databases';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService({ settings: { RETENTION_OF_DELETED_DAYS: '7' } });
    await describeHost(service);
    useServiceOfBackups(service);
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

test('a backup of a deleted database is found below the databases, and starts a new one', async () => {
  const { page } = window;
  const place = `/projects/${service.project}/databases`;
  const { id } = await database(service, { name: 'orders' });
  const backup = await scheduled(id);
  await visit(page, place);
  await page.getByRole('link', { name: 'orders' }).waitFor();
  expect(await page.getByText('Backups of deleted databases').count()).toBe(0);
  await service.call('DELETE', `/v2/databases/${id}`);
  await visit(page, place);
  await page.getByRole('rowheader', { name: 'orders', exact: true }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Restore a backup of orders' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.waitForURL(/\/databases\/db_/);
  const { data } = (await service.call('GET', '/v2/databases')).body;
  expect(data).toMatchObject([
    { name: expect.stringMatching(/^orders-\d+$/), restore_from: { database_id: id, backup_id: backup } },
  ]);
});
