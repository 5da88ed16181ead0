/** @tier heavy @quarter 3 @covers clients/dashboard/src/pages/volume_backups.tsx */
// Backups of volumes in the browser: taken, scheduled, and back in the volume or in another one.
import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { dashboardOf, newPerson, violations, visit, type Window } from '../support/dashboard/chromium';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService({ worker: true });
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

test('a backup is taken, scheduled and restored', async () => {
  const { page } = window;
  const { body } = await service.call('POST', '/v2/volumes', { body: { name: 'uploads', size_gb: 1 } });
  await service.settle(`/v2/volumes/${body.id}`);
  const files = path.join(service.dataDir, 'volumes', body.id, 'data');
  writeFileSync(path.join(files, 'before'), '');
  await visit(page, `/projects/${service.project}/volumes`);
  await page.getByRole('button', { name: 'Backups of uploads' }).click();
  const dialog = page.getByRole('dialog', { name: 'Backups of uploads' });
  await dialog.getByText('No backups yet').waitFor();
  await dialog.getByLabel('Take a backup now').fill('Before the migration');
  await dialog.getByRole('button', { name: 'Take a backup' }).click();
  await dialog.getByRole('cell', { name: 'Before the migration' }).waitFor();
  await dialog.getByRole('button', { name: 'Restore in place' }).waitFor();
  await dialog.getByLabel('Times in UTC, as a cron expression').fill('30 2 * * *');
  await dialog.getByRole('button', { name: 'Save the schedule' }).click();
  await page.getByText('The schedule is saved.').waitFor();
  expect((await service.call('GET', `/v2/volumes/${body.id}`)).body.backup_schedule).toBe('30 2 * * *');
  expect(await violations(page)).toEqual([]);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/volume-backups.png` });

  renameSync(path.join(files, 'before'), path.join(files, 'after'));
  await dialog.getByRole('button', { name: 'Restore in place' }).click();
  const question = page.getByRole('dialog', { name: 'Replace the files of uploads?' });
  await question.getByRole('textbox').fill('uploads');
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/volume-restore.png` });
  await question.getByRole('button', { name: 'Replace the files' }).click();
  await page.getByText('The volume uploads gets the files of the backup.').waitFor();
  await service.settle(`/v2/volumes/${body.id}`);
  expect(readdirSync(files)).toEqual(['before']);

  await page.getByRole('button', { name: 'Backups of uploads' }).click();
  await dialog.getByRole('button', { name: 'Restore as new' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore', exact: true }).click();
  await page.getByRole('link', { name: /^uploads-\d+$/ }).waitFor();
});
