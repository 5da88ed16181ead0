/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/installation */
// The pages about the installation with what a large one has: long names, full disks, works that fail.
import { mkdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { mintId } from '../../core/ids';
import { saveBackupJournal } from '../../server/platform/backup_journal';
import { dashboardOf, newPerson, settled, violations, visit, type Window } from '../support/dashboard/chromium';
import { faultsOfRoom } from '../support/dashboard/page_rules';
import { startService, type TestService } from '../support/service';

const GB = 1e9;
const LONG = 'the-project-of-a-team-that-gives-everything-a-very-long-name-so-that-nobody-forgets-what-it-is-for';
const PAGES = ['machine', 'disk', 'work', 'backups', 'users', 'projects', 'activity'];
const ADDRESS = '2001:0db8:0000:0000:0000:0000:0000:0001';
const FAILURE = `connect ECONNREFUSED ${ADDRESS.repeat(2)}: the mirror of npm is away`;

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService();
    await newPerson(service, 'owner@example.org', 'owner');
    await newPerson(service, 'somebody.with.a.very.long.address.indeed@department.of.long.names.example.com', 'viewer');
    await service.sql(`update users set is_operator = true where email = 'owner@example.org'`, []);
    await service.sql('update projects set name = $1', [LONG]);
    await fill();
    return service;
  },
  (opened) => void (window = opened),
);

async function fill(): Promise<void> {
  const kinds = ['databases', 'volumes', 'objects', 'build_caches', 'backups_of_the_installation', 'bin'].map(
    (kind, index) => ({
      kind,
      bytes: (80 * GB) / (index + 1),
      problem: index === 1 ? 'Measuring took too long: the real size is larger.' : null,
    }),
  );
  const parts = kinds.slice(0, 4).map(({ kind, bytes }) => ({ kind, bytes: bytes / 2 }));
  const projects = [
    { id: service.project, name: LONG, bytes: 100 * GB, parts },
    { id: mintId('prj'), name: null, bytes: 1, parts: [] },
  ];
  const started_at = new Date(Date.now() - 3_600_000).toISOString();
  const use = { started_at, ended_at: new Date(Date.now() - 3_500_000).toISOString(), kinds, projects };
  const work = [
    {
      name: 'release_notice',
      everyMs: 300_000,
      runs: 7,
      failures: 3,
      lastRunAt: Date.now(),
      lastSuccessAt: null,
      lastError: FAILURE,
    },
    {
      name: 'used_keys',
      everyMs: 500,
      runs: 1_234_567,
      failures: 0,
      lastRunAt: Date.now(),
      lastSuccessAt: Date.now(),
      lastError: null,
    },
  ];
  const worker = { role: 'worker', pid: 4_194_304, version: '1.0.0', started_at, memory_bytes: 5e8, work };
  await service.sql(
    `insert into installation_reports (machine, name, facts, reported_at) values ($1, 'disk use', $2, now()),
      ($1, 'disks', '{"samples": []}', now()), ($1, 'process 4194304', $3, now() - interval '4 minutes')
      on conflict (machine, name) do nothing`,
    [os.hostname(), JSON.stringify(use), JSON.stringify(worker)],
  );
  await service.sql(
    `insert into activity (id, project_id, action, actor, resource_type, resource_id, resource_name, changed_fields,
        created_at)
      values ($1, $2, 'application.updated', $3, 'application', $1, $4,
          '{scaling,health_check_path,build_command}', now()),
        ($5, null, 'installation.backed_up', '{"type": "system", "id": null, "name": "Operator (alice)"}',
          'installation', 'installation', null, '{}', now())`,
    [mintId('act'), service.project, JSON.stringify({ type: 'user', id: null, name: LONG }), `=${LONG}`, mintId('act')],
  );
  mkdirSync(path.join(service.platform.config.dataDir, 'backup'), { recursive: true });
  await saveBackupJournal(service.platform.config, {
    ...{ started_at, ended_at: started_at, point: null, files: 123_456, bytes: 9e10, added_bytes: 1e8 },
    ...{ repository: `s3:https://s3.example.com/${LONG}`, notes: ['2 files went while they were read, such as x.'] },
    ...{ error: FAILURE, last_whole_at: started_at },
    proof: { point: 'x', at: started_at, seconds: 41, error: null, manifest: null },
    points: [...Array(30).keys()].map((number) => ({
      ...{ id: `${number}`.padStart(64, 'abc'), at: new Date(Date.now() - number * 86_400_000).toISOString() },
      // The oldest one was made on another machine.
      ...(number < 29
        ? { version: '1.0.0', files: 123_456, bytes: 9e10 / (number + 1) }
        : { version: null, files: null, bytes: null }),
      ...{ proven_at: number < 29 ? started_at : null, proof_error: number === 3 ? FAILURE : null },
    })),
  });
}

const pictures = process.env.PICTURES;

test.each(PAGES)(
  'the page of the %s has room for it, and no fault of axe',
  async (name) => {
    const { page } = window;
    await page.setViewportSize({ width: 1440, height: 900 });
    await visit(page, `/installation/${name}`);
    const take = async (width: number): Promise<void> => {
      if (pictures)
        await page.screenshot({ path: path.join(pictures, `${name}-${width}.png`), fullPage: width < 2000 });
    };
    expect(await faultsOfRoom(page, take)).toEqual([]);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [320, 1440]) {
        await page.setViewportSize({ width, height: 900 });
        expect([colorScheme, width, await violations(page)]).toEqual([colorScheme, width, []]);
      }
    }
  },
  90_000,
);

test('the side bar leads to all of them', async () => {
  const { page } = window;
  await page.setViewportSize({ width: 1440, height: 900 });
  await visit(page, '/installation');
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Background work' }).click();
  await page.getByRole('heading', { name: 'Background work' }).waitFor();
  await page.getByText('It has not reported since').waitFor();
  expect(await page.getByText('the mirror of npm is away').count()).toBe(1);
});

test('caches are cleaned after a question', async () => {
  const { page } = window;
  await visit(page, '/installation/disk');
  await page.getByRole('button', { name: 'Clean the build caches' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Clean', exact: true }).click();
  await page.getByText('They are being cleaned').waitFor();
  const rows = await service.sql(
    `select facts ->> 'ended_at' as ended from installation_reports where name = 'cache cleaning'`,
  );
  expect(rows).toHaveLength(1);
});

test('a person is found, and the sessions of that person end', async () => {
  const { page } = window;
  await visit(page, '/installation/users');
  await page.getByLabel('Name, e-mail address or id').fill('department.of');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.locator('main').getByText('owner@example.org').waitFor({ state: 'detached' });
  const [{ id }] = await service.sql(`select id from users where email like '%department%'`);
  await service.sql(
    `insert into sessions (id, hash, user_id, address, user_agent, expires_at)
      values ('ses_x', 'x', $1, '192.0.2.7', 'Mozilla/5.0 Firefox/130.0', now() + interval '1 day')`,
    [id],
  );
  await page.getByLabel('Name, e-mail address or id').fill('department.of.long');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByRole('button', { name: /^1 sessions of/ }).click();
  await page.getByText('192.0.2.7').waitFor();
  await page.getByRole('button', { name: 'End all sessions' }).click();
  await page.getByRole('button', { name: 'End', exact: true }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await service.sql('select 1 from sessions where user_id = $1', [id])).toEqual([]);
});

test('what was looked for in the activity is downloaded', async () => {
  const { page } = window;
  await visit(page, '/installation/activity');
  await page.getByLabel('Person').fill('alice');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByRole('cell', { name: 'Operator (alice)' }).waitFor();
  await settled(page);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download JSON lines' }).click(),
  ]);
  const lines = readFileSync(await download.path(), 'utf8')
    .trimEnd()
    .split('\n');
  expect(lines.map((line) => JSON.parse(line).action)).toEqual(['installation.backed_up']);
});
