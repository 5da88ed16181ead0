/** @tier heavy @quarter 1 @covers contract/stack models/stacks */
/** @user any */
// A process that is killed while it applies a file: at each step, nothing is left of it, and the plan still holds.
import { named } from '../../db/statement';
import { describeHost } from '../support/databases/databases';
import { freePort } from '../support/processes/free_port';
import { endPrograms, startProgram } from '../support/processes/program';
import { startService, type TestService } from '../support/service';
import { stacksOf } from '../support/stacks/stack_calls';
import { retryCheck } from '../support/wait_for';

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await describeHost(service);
});
afterAll(async () => {
  await endPrograms();
  await service.close();
});

const FILE = `
volumes: { uploads: { size_gb: 1, application: shop, mount_path: /data } }
applications:
  shop:
    settings: { maintenance_mode: true }
    processes: { web: { instances: 2 }, worker: { instances: 1 } }
    variables: { LOG_LEVEL: debug }
    schedules: { nightly: { cron: '@daily', command: npm run report } }
    domains: { killed.example.com: { dns: manual } }
`;
/** Where each step waits; the last one is the entry of the apply itself. */
const TABLES = [
  'applications',
  'processes',
  'volumes',
  'environment_variables',
  'cron_schedules',
  'domains',
  'activity',
];

test.each(TABLES)(
  'killed where it writes %s, an apply has made nothing, and goes through afterwards',
  async (table) => {
    const { id, key } = await service.newProject();
    const stacks = stacksOf(service, id, { key, project: id });
    const file = FILE.replace('killed', `killed-${table.replace('_', '-')}`);
    const plan = await stacks.plan(file);
    expect(plan.body.refusals).toEqual([]);
    const port = String(await freePort());
    const program = startProgram({
      PORT: port,
      ...{ DATABASE_URL: service.platform.config.databaseUrl as string, PLATFORM_DATA_DIR: service.dataDir },
      ...{ BASE_URL: service.url, WORKER: 'separate' },
    });
    await program.ready();
    await service.platform.database.transaction(async (session) => {
      await session.query(named(`lock table ${table} in share mode`), []);
      const sent = fetch(`http://127.0.0.1:${port}/v2/projects/${id}/stack/apply`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ document: file, plan_token: plan.body.plan_token }),
      }).then(
        ({ status }) => `answered ${status}`,
        () => 'no answer',
      );
      const waits = `select 1 from pg_locks where relation = '${table}'::regclass and not granted`;
      await retryCheck(async () => expect(await service.sql(waits)).not.toEqual([]));
      program.signal('SIGKILL');
      await program.ended;
      expect(await sent).toBe('no answer');
    });
    const empty = await stacks.export();
    expect(empty.body.document).toBe('{}\n');
    await retryCheck(async () => expect((await stacks.apply(file, plan)).status).toBe(202));
    expect((await stacks.plan(file)).body.changes).toEqual([]);
  },
);
