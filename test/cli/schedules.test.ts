/** @tier heavy @quarter 2 @covers clients/cli/src/commands/schedules.ts */
// Schedules by the command line. Nothing runs: what a schedule starts is a row.
import { deployed } from '../support/deployments/deployed';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService();
  home = openHome(service);
  const made = await service.call('POST', '/v2/applications', { body: { name: 'shop' } });
  await deployed(service, made.body.id);
  await home.output(['link', 'shop']);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const NIGHTLY = ['--cron', '30 2 * * *', '--time-zone', 'Europe/Berlin', '--command', 'npm run report'];

test('a schedule is created, listed, changed, run, disabled, enabled and deleted', async () => {
  expect(await home.svc(['schedules', 'create', 'nightly', '--cron', '@daily'])).toMatchObject({ code: 2 });
  const created = JSON.parse(
    await home.output(['schedules', 'create', 'nightly', ...NIGHTLY, '--timeout', '10m', '--missed', 'skip', '--json']),
  );
  expect(created).toMatchObject({
    ...{ name: 'nightly', cron: '30 2 * * *', time_zone: 'Europe/Berlin', command: 'npm run report' },
    ...{ timeout_seconds: 600, concurrency: 'forbid', missed: 'skip', enabled: true },
  });
  expect(await home.output(['schedules', 'ls'])).toMatch(/^nightly\t30 2 \* \* \*\tEurope\/Berlin\t/);
  expect(await home.output(['schedules', 'update', 'nightly', '--cron', '@hourly', '--field', 'cron'])).toBe(
    '@hourly\n',
  );
  expect(await home.svc(['schedules', 'update', 'nightly'])).toMatchObject({ code: 2 });
  const run = (await home.output(['schedules', 'run', 'nightly', '--field', 'id'])).trim();
  expect(run).toMatch(/^run_/);
  expect(await home.svc(['schedules', 'run', 'nightly'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has not finished'),
  });
  expect(await home.output(['schedules', 'ls', '--field', 'last_run.status'])).toBe('queued\n');
  expect(await home.output(['schedules', 'disable', created.id, '--field', 'enabled'])).toBe('false\n');
  expect(await home.output(['schedules', 'enable', 'nightly', '--field', 'enabled'])).toBe('true\n');
  expect(await home.svc(['schedules', 'rm', 'nightly'])).toMatchObject({ code: 2 });
  await home.output(['schedules', 'rm', 'nightly', '--yes']);
  expect(await home.svc(['schedules', 'run', 'nightly'])).toMatchObject({ code: 4 });
});

test('a wrong expression ends with the name of the field and an example', async () => {
  const wrong = ['schedules', 'create', 'often', '--cron', '0 30 2 * * *', '--command', 'true'];
  const { code, stderr } = await home.svc(wrong);
  expect(code).toBe(1);
  expect(stderr).toMatch(/cron/);
  expect(stderr).toContain('such as 30 2 * * * or @daily');
});
