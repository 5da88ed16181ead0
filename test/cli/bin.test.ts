/** @tier heavy @quarter 2 @covers clients/cli/src/commands/bin.ts */
// The bin by the command line. Nothing runs: what is deleted is a row.
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService({ settings: { RETENTION_OF_DELETED_DAYS: '7' } });
  home = openHome(service);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

test('a deleted volume is listed, restored under another name, and purged', async () => {
  const create = (): Promise<string> => home.output(['volumes', 'create', 'uploads', '--field', 'id']);
  const first = (await create()).trim();
  await home.output(['volumes', 'rm', 'uploads', '--yes']);
  expect(await home.output(['bin'])).toMatch(/^uploads\tvolume\t/);
  await create();
  expect(await home.svc(['bin', 'restore', 'uploads'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('name'),
  });
  const restored = await home.output(['bin', 'restore', first, '--name', 'uploads-before', '--field', 'resource.id']);
  expect(restored).toBe(`${first}\n`);
  await home.output(['volumes', 'rm', 'uploads', '--yes']);
  await home.output(['volumes', 'rm', 'uploads-before', '--yes']);
  expect(await home.svc(['bin', 'restore', 'nothing'])).toMatchObject({
    stderr: expect.stringContaining('uploads-before, uploads'),
  });
  await home.output(['bin', 'purge', 'uploads', '--yes']);
  expect(await home.output(['bin', 'ls', '--field', 'resource.name'])).toBe('uploads-before\n');
});

test('a deleted project is listed and restored by its name', async () => {
  const id = (await home.output(['projects', 'create', 'Spare & parts', '--field', 'id'])).trim();
  const refused = await home.svc(['projects', 'rm', 'Spare & parts']);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('It stays in the bin for 7 days.') });
  const removed = await home.svc(['projects', 'rm', 'Spare & parts', '--yes']);
  expect(removed.stderr).toBe(
    `Deleted the project Spare & parts. Within 7 days, this restores it: svc projects restore 'Spare & parts'\n`,
  );
  expect(await home.output(['projects', 'deleted', '--field', 'resource.id'])).toBe(`${id}\n`);
  expect(await home.svc(['projects', 'restore', 'nothing'])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('There are: Spare & parts'),
  });
  expect(await home.output(['projects', 'restore', 'Spare & parts', '--field', 'resource.id'])).toBe(`${id}\n`);
  expect(await home.output(['projects', 'deleted'])).toBe('');
  expect(await home.output(['projects', 'ls', '--field', 'id'])).toContain(id);
});

test('a command that is named has the flags of the command that names it', async () => {
  await home.output(['volumes', 'create', 'papers']);
  const flags = ['--project', service.project];
  const removed = await home.svc(['volumes', 'rm', 'papers', '--yes', ...flags]);
  expect(removed.stderr).toContain(`this restores it: svc bin restore papers --project ${service.project}\n`);
  await home.output(['bin', 'restore', 'papers']);
});
