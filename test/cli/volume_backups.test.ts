/** @tier heavy @quarter 3 @covers clients/cli/src/commands/volume_backups.ts */
// `svc volumes backup`, `backups`, `restore`, `download` and `schedule`.
import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService({ worker: true });
  home = openHome(service);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

test('the files of a volume are backed up, downloaded and restored', async () => {
  const id = await home.output(['volumes', 'create', 'uploads', '--wait', '--field', 'id']);
  const files = path.join(service.dataDir, 'volumes', id.trim(), 'data');
  writeFileSync(path.join(files, 'before'), '');
  expect((await home.svc(['volumes', 'restore', 'uploads', '--yes'])).stderr).toContain('has no complete backup');
  const taken = JSON.parse(await home.output(['volumes', 'backup', 'uploads', '--note', 'before', '--wait', '--json']));
  expect(await home.output(['volumes', 'backups', 'uploads'])).toContain(`${taken.id}\tmanual\tcompleted\tsnapshot\t`);
  const target = path.join(service.dataDir, 'uploads.tar.gz');
  await home.output(['volumes', 'download', 'uploads', target]);
  expect(execFileSync('tar', ['-tzf', target]).toString()).toBe('./\n./before\n');
  writeFileSync(path.join(files, 'after'), '');
  expect(await home.svc(['volumes', 'restore', 'uploads'])).toMatchObject({ code: 2 });
  await home.output(['volumes', 'restore', 'uploads', '--yes', '--wait']);
  expect(readdirSync(files)).toEqual(['before']);
  expect(await home.output(['volumes', 'restore', 'uploads', '--as', 'copy', '--wait'])).toMatch(/^name\tcopy\n/);
  expect(await home.output(['volumes', 'schedule', 'uploads', '--cron', '@daily', '--days', '3'])).toBe(
    'name\tuploads\nschedule\t@daily\nkept days\t3\n',
  );
  expect(await home.output(['volumes', 'schedule', 'uploads', '--off'])).toContain('kept days\t3');
});
