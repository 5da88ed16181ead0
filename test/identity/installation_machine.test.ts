// What operators see of the installation: the machine, what uses the disk, processes, backups. Nobody else does.
import { mkdirSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { mintId } from '../../core/ids';
import { cleanCaches } from '../../server/agents/cache_cleaning';
import { measureDiskUse, sampleDisks } from '../../server/agents/installation_disks';
import { withoutPassword } from '../../server/installation/machine';
import { processes as doctorOfProcesses } from '../../server/operator/doctor_reports';
import { saveBackupJournal } from '../../server/platform/backup_journal';
import { deployed, instanceOf } from '../support/deployments/deployed';
import { newBrowser, type Browser } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';

const MIB = 1_048_576;
const MACHINE = `{ installationMachine { name cpus load memory_bytes memory_available_bytes memory_of_instances_bytes
  memory_of_databases_bytes kernel system time database_clock_ahead_seconds programs { name version }
  disks { mount size_bytes used_bytes inodes inodes_used days_until_full measured_since } } }`;
const USE = `{ installationDiskUse { machine measured_at seconds kinds { kind bytes is_cleaned is_part problem }
  projects { id name bytes parts { kind bytes } } cleaning { requested_at ended_at applications kept freed_bytes } } }`;
const PROCESSES = `{ installationProcesses { waiting_seconds tasks { name last_run_at next_run_at last_error }
  processes { machine role pid version is_silent
    work { name every_seconds runs failures last_run_at last_error } } } }`;
const BACKUPS = `{ installationBackups { repository obstacle every_hours last_whole_at next_at error proven_at
  proof_seconds proof_error points { id made_at version bytes proven_at } } }`;
const CLEAN = 'mutation ($machine: String!) { cleanBuildCaches(machine: $machine) { requested_at ended_at } }';
const NOBODY = mintId('usr');
const OTHERS = [
  ...['{ listInstallationUsers { data { id } } }', '{ listInstallationProjects { data { id } } }'],
  ...[`{ listUserSessions(user_id: "${NOBODY}") { data { id } } }`, '{ listInstallationActivity { data { id } } }'],
  ...[`mutation { endUserSessions(user_id: "${NOBODY}") { count } }`],
  ...[
    'mutation { exportInstallationActivity(format: csv) { url } }',
    'mutation { cleanBuildCaches(machine: "x") { kept } }',
  ],
];
const NONE = new AbortController().signal;

let service: TestService;
let operator: Browser;
let tenant: Browser;
let operatorsKey: string;
let application: Awaited<ReturnType<typeof deployed>>;
beforeAll(async () => {
  service = await startService();
  operator = await newBrowser(service, 'operator@example.com');
  tenant = await newBrowser(service, 'tenant@example.com', 'owner');
  await service.sql('update users set is_operator = true where email = $1', ['operator@example.com']);
  operatorsKey = await service.mintKey();
  await service.sql(`update api_keys set user_id = (select id from users where email = 'operator@example.com')
    where id = (select max(id) from api_keys)`);
  const { body } = await service.call('POST', '/v2/applications', { body: { name: 'shop', preset: 'node-web' } });
  application = await deployed(service, body.id);
});
afterAll(() => service.close());

const parts = () => service.platform;
const inData = (...names: string[]): string => path.join(service.platform.config.dataDir, ...names);

function fill(bytes: number, ...names: string[]): void {
  const file = inData(...names);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, Buffer.alloc(bytes, 1));
}

test.each([MACHINE, USE, PROCESSES, BACKUPS, ...OTHERS])('%s is refused to everybody else', async (query) => {
  const refused = await tenant.refused(query);
  expect([refused.code, refused.message, refused.extensions.required_role]).toEqual([
    'role_not_permitted',
    'This is for operators of the installation.',
    'operator',
  ]);
  const byKey = await service.graphql(query, {}, { key: operatorsKey });
  expect(byKey.errors?.[0].extensions.code).toBe('dashboard_only');
  const byNobody = await service.graphql(query, {}, { key: null });
  expect(byNobody.errors?.[0].extensions.code).toBe('session_required');
});

test('the machine is shown with what is promised of its memory', async () => {
  await instanceOf(service, application, 'web');
  await service.sql('update processes set instances = 2 where application_id = $1', [application.id]);
  const { installationMachine: machine } = await operator.data(MACHINE);
  expect(machine).toMatchObject({ name: os.hostname(), cpus: os.availableParallelism() });
  expect(machine.memory_of_instances_bytes).toBe(2 * 512 * MIB);
  expect(machine.memory_available_bytes).toBeLessThanOrEqual(machine.memory_bytes);
  expect(Math.abs(machine.database_clock_ahead_seconds)).toBeLessThan(2);
  expect(machine.load).toHaveLength(3);
  expect(machine.programs).toContainEqual({ name: 'node of the platform', version: process.versions.node });
  const mounts: string[] = machine.disks.map(({ mount }: { mount: string }) => mount);
  expect(mounts).toContain('/');
  expect(new Set(mounts).size).toBe(mounts.length);
  for (const { size_bytes, used_bytes } of machine.disks) expect(used_bytes).toBeLessThanOrEqual(size_bytes);
});

test('a disk that grows says in how many days it is full', async () => {
  await sampleDisks(parts());
  const [{ facts }] = await service.sql(`select facts from installation_reports where name = 'disks'`);
  const [{ disks }] = facts.samples;
  const root = disks.find(({ mount }: { mount: string }) => mount === '/');
  const left = root.size_bytes - root.used_bytes;
  // A tenth of what is left, each day.
  const samples = [3, 2, 1].map((days) => ({
    at: new Date(Date.now() - days * 86_400_000).toISOString(),
    disks: [{ ...root, used_bytes: root.used_bytes - (left / 10) * days }],
  }));
  await service.sql(`update installation_reports set facts = $1 where name = 'disks'`, [JSON.stringify({ samples })]);
  const { installationMachine: machine } = await operator.data(MACHINE);
  const shown = machine.disks.find(({ mount }: { mount: string }) => mount === '/');
  expect(shown.days_until_full).toBeGreaterThan(9);
  expect(shown.days_until_full).toBeLessThan(11);
  expect(shown.measured_since).toBe(samples[0]?.at);
  await sampleDisks(parts());
  const [after] = await service.sql(`select facts from installation_reports where name = 'disks'`);
  expect(after.facts.samples).toHaveLength(4);
});

test('what uses the disk is measured by kind and by project, and only shown by a request', async () => {
  expect((await operator.data(USE)).installationDiskUse).toEqual([]);
  fill(3 * MIB, 'runtime/caches', application.id, 'application', 'node_modules');
  fill(2 * MIB, 'runtime/releases', application.deployment, 'server.js');
  fill(MIB, 'databases/backups/db_x/bkp_x/dump');
  fill(2 * MIB, 'databases/db_x/data/file');
  fill(MIB, 'runtime/caches/app_gone/application/file');
  await measureDiskUse(parts(), NONE);
  const [used] = (await operator.data(USE)).installationDiskUse;
  const bytes = Object.fromEntries(used.kinds.map((kind: { kind: string; bytes: number }) => [kind.kind, kind.bytes]));
  expect(used.machine).toBe(os.hostname());
  expect(bytes.build_caches / MIB).toBeCloseTo(4, 0);
  expect(bytes.releases / MIB).toBeCloseTo(2, 0);
  expect(bytes.backups_of_databases / MIB).toBeCloseTo(1, 0);
  expect(bytes.databases / MIB).toBeCloseTo(2, 0);
  expect(used.kinds.filter(({ is_cleaned }: { is_cleaned: boolean }) => is_cleaned)).toMatchObject([
    { kind: 'build_caches', problem: null },
  ]);
  expect(used.projects).toMatchObject([
    { id: service.project, parts: [{ kind: 'build_caches' }, { kind: 'releases' }] },
  ]);
  expect(used.projects[0].bytes / MIB).toBeCloseTo(5, 0);
});

test('caches are cleaned but those of applications that are being deployed, and layers of images stay', async () => {
  const other = await service.call('POST', '/v2/applications', { body: { name: 'other', preset: 'node-web' } });
  fill(MIB, 'runtime/caches', other.body.id, 'application', 'file');
  fill(MIB, 'runtime/caches', application.id, 'application.layers', 'sha256-1', 'files');
  await service.sql(`update deployments set status = 'building' where application_id = $1`, [application.id]);
  const caches = inData('runtime/caches');
  const database = service.platform.database;
  expect(await cleanCaches({ database, caches }, NONE)).toMatchObject({ applications: 2, kept: 1 });
  expect(existsSync(path.join(caches, other.body.id, 'application'))).toBe(false);
  expect(existsSync(path.join(caches, application.id, 'application', 'node_modules'))).toBe(true);
  await service.sql(`update deployments set status = 'active' where application_id = $1`, [application.id]);
  const { freed_bytes, ...counts } = await cleanCaches({ database, caches }, NONE);
  expect(counts).toEqual({ applications: 1, kept: 0 });
  expect(freed_bytes / MIB).toBeCloseTo(3, 0);
  expect(existsSync(path.join(caches, application.id, 'application.layers', 'sha256-1', 'files'))).toBe(true);
  expect(existsSync(path.join(caches, '.cleaned'))).toBe(false);
  rmSync(caches, { recursive: true });
});

test('the button asks the machine once, which stands in the activity', async () => {
  const machine = os.hostname();
  const { cleanBuildCaches: first } = await operator.data(CLEAN, { machine });
  expect(first.ended_at).toBeNull();
  expect((await operator.data(CLEAN, { machine })).cleanBuildCaches).toEqual(first);
  expect((await operator.data(USE)).installationDiskUse[0].cleaning).toMatchObject(first);
  expect((await operator.refused(CLEAN, { machine: 'elsewhere' })).code).toBe('not_found');
  const entries = await service.sql(`select actor from activity where action = 'installation.caches_cleaned'`);
  expect(entries).toMatchObject([{ actor: { type: 'user', name: 'Somebody' } }, {}]);
});

test('each process reports what it does, and one that is silent is named', async () => {
  await service.sql(
    `insert into installation_reports (machine, name, facts, reported_at) values ('elsewhere', 'process 7', $1,
      now() - interval '3 minutes'), ('elsewhere', 'process 8', $2, now())`,
    [
      JSON.stringify({
        role: 'worker',
        pid: 7,
        version: '1.0.0',
        started_at: '2026-01-01T00:00:00Z',
        memory_bytes: 1,
        work: [],
      }),
      JSON.stringify({
        ...{ role: 'web', pid: 8, version: '1.0.0', started_at: '2026-01-01T00:00:00Z', memory_bytes: 1 },
        work: [
          { name: 'used_keys', everyMs: 500, runs: 3, failures: 1, lastRunAt: 1, lastSuccessAt: null, lastError: 'no' },
        ],
      }),
    ],
  );
  const { installationProcesses: found } = await operator.data(PROCESSES);
  const own = found.processes.find(({ pid }: { pid: number }) => pid === process.pid);
  expect(own).toMatchObject({ machine: os.hostname(), role: 'service', is_silent: false });
  expect(own.work.map(({ name }: { name: string }) => name)).toContain('refused_calls');
  expect(found.processes).toContainEqual(expect.objectContaining({ pid: 7, is_silent: true }));
  expect(found.processes.find(({ pid }: { pid: number }) => pid === 8).work).toEqual([
    {
      name: 'used_keys',
      every_seconds: 0.5,
      runs: 3,
      failures: 1,
      last_run_at: '1970-01-01T00:00:00.001Z',
      last_error: 'no',
    },
  ]);
  expect((await doctorOfProcesses(service.platform.database)).map(({ detail }) => detail)).toEqual([
    expect.stringMatching(/^worker 7 on elsewhere has not reported since 20/),
    'used_keys of web 8 on elsewhere fails: no',
  ]);
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
  expect(metrics).toContain('platform_process_failing_work{machine="elsewhere",role="web",pid="8"} 1');
});

test('backups are shown with their proof, and without one what to do', async () => {
  const { config } = service.platform;
  const { installationBackups: none } = await operator.data(BACKUPS);
  expect(none).toMatchObject({ repository: null, last_whole_at: null, next_at: null });
  expect(none.obstacle).toMatch(/^Nothing is backed up\. Set RESTIC_REPOSITORY /);
  mkdirSync(inData('backup'), { recursive: true });
  await saveBackupJournal(config, {
    ...{ started_at: '2026-11-29T03:00:00Z', ended_at: '2026-11-29T03:11:00Z', point: 'abc', files: 1, bytes: 2 },
    ...{ repository: 'rest:https://ops:hush@example.com/', added_bytes: 1, notes: [], error: null },
    last_whole_at: '2026-11-29T03:00:00Z',
    proof: { point: 'abc', at: '2026-11-29T03:12:00Z', seconds: 41, error: null, manifest: null },
    points: [
      {
        ...{ id: 'abc', at: '2026-11-29T03:00:00Z', version: '1.0.0', files: 1, bytes: 2 },
        ...{ proven_at: '2026-11-29T03:12:00Z', proof_error: null },
      },
    ],
  });
  const { installationBackups: shown } = await operator.data(BACKUPS);
  expect(shown).toMatchObject({ proven_at: '2026-11-29T03:12:00Z', proof_seconds: 41, proof_error: null });
  expect(shown.points).toEqual([
    { id: 'abc', made_at: '2026-11-29T03:00:00Z', version: '1.0.0', bytes: 2, proven_at: '2026-11-29T03:12:00Z' },
  ]);
  expect(shown.repository).toBe('rest:https://ops:***@example.com/');
  expect(withoutPassword('s3:https://s3.example.com/bucket')).toBe('s3:https://s3.example.com/bucket');
});
