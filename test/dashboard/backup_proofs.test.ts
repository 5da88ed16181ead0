/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/database/backups.tsx */
// Proofs of backups in the browser: what was found, why one waits, and one that somebody asks for.
import { dashboardOf, newPerson, violations, visit, type Window } from '../support/dashboard/chromium';
import { scheduled, useServiceOfBackups } from '../support/databases/database_backup_cases';
import { database, describeHost } from '../support/databases/databases';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService();
    await describeHost(service);
    useServiceOfBackups(service);
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

test('the backups of a database show their proofs, and one is asked for', async () => {
  const { page } = window;
  const { id } = await database(service, { name: 'orders' });
  await scheduled(id, { proof_status: 'proven', proven_at: new Date().toISOString(), proof_seconds: 41 });
  const failure = 'The file base.tar.gz of the backup is damaged. gzip: stdin: unexpected end of file.';
  await scheduled(id, { proof_status: 'failed', proof_failure: failure });
  const away = 'The backup store does not respond. The proof waits for it.';
  await scheduled(id, { proof_status: 'waiting', proof_failure: away });
  const newest = await scheduled(id);
  await visit(page, `/databases/${id}/backups`);
  await page.getByRole('table').waitFor();
  const row = (number: number) => page.getByRole('row').nth(number);
  await row(4)
    .getByText(/restored in 41 s/)
    .waitFor();
  await row(3).getByText(failure).waitFor();
  await row(2).getByText(away).waitFor();
  await row(1).getByText('unproven').waitFor();
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT, fullPage: true });
  expect(await violations(page)).toEqual([]);
  await row(1).getByRole('button', { name: 'Prove' }).click();
  await row(1).getByText('waiting').waitFor();
  const { body } = await service.call('GET', `/v2/databases/${id}/backups/${newest}`);
  expect(body.proof_status).toBe('waiting');
});
