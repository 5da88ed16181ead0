// The activity of all projects and of the installation itself, for its operators, and its export.
import { mintId } from '../../core/ids';
import { noteUpgrade } from '../../server/installation/upgrade_note';
import { newJournal } from '../../server/upgrade/journal';
import { byteOrderMarkless, parseCsv } from '../support/csv';
import { newBrowser, type Browser } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';

const ACTIVITY = `query ($filter: InstallationActivityFilter, $limit: Int, $cursor: String) {
  listInstallationActivity(filter: $filter, limit: $limit, cursor: $cursor) { next_cursor
    data { id action outcome actor { type id name } project { id name } resource_id resource_name } } }`;
const EXPORT = `mutation ($format: ActivityExportFormat!, $filter: InstallationActivityFilter) {
  exportInstallationActivity(format: $format, filter: $filter) { url expires_at } }`;

let service: TestService;
let operator: Browser & { user: { id: string } };
beforeAll(async () => {
  service = await startService();
  operator = await newBrowser(service, 'operator@example.com');
  await newBrowser(service, 'tenant_1@example.com', 'owner');
  await service.sql('update users set is_operator = true where email = $1', ['operator@example.com']);
});
afterAll(() => service.close());

async function queriesOf(run: () => Promise<unknown>): Promise<number> {
  await run();
  const query = jest.spyOn(service.platform.database, 'query');
  await run();
  const count = query.mock.calls.length;
  query.mockRestore();
  return count;
}

async function enter(
  action: string,
  values: { name?: string; actor?: object; project?: string | null } = {},
): Promise<void> {
  const { name = null, actor = { type: 'system', id: null, name: 'Platform' }, project = null } = values;
  await service.sql(
    `insert into activity (id, project_id, action, actor, actor_id, resource_type, resource_id, resource_name,
        created_at) values ($1, $2, $3, $4, $5, 'project', 'prj_x', $6, now())`,
    [mintId('act'), project, action, JSON.stringify(actor), (actor as { id: string | null }).id, name],
  );
}

test('the list asks as often for many rows as for one', async () => {
  for (let index = 0; index < 12; index += 1) await service.newProject({ stranger: true });
  const count = (limit: number) => queriesOf(() => operator.data(ACTIVITY, { limit }));
  expect(await count(12)).toBe(await count(1));
});

test('activity is filtered by person, action, project and time', async () => {
  await enter('installation.backed_up', { actor: { type: 'system', id: null, name: 'Operator (alice)' } });
  await enter('volume.created', { project: service.project, name: 'data' });
  const actions = async (filter: object): Promise<string[]> => {
    const { data } = (await operator.data(ACTIVITY, { filter })).listInstallationActivity;
    return data.map(({ action }: { action: string }) => action);
  };
  expect(await actions({ person: 'alice' })).toEqual(['installation.backed_up']);
  expect(await actions({ person: 'tenant_1@' })).toEqual(['session.created']);
  expect(await actions({ action: 'volume.created' })).toEqual(['volume.created']);
  expect(new Set(await actions({ action: 'installation.' }))).toEqual(new Set(['installation.backed_up']));
  expect(await actions({ project_id: service.project, action: 'volume.' })).toEqual(['volume.created']);
  expect(await actions({ until: '2020-01-01T00:00:00Z' })).toEqual([]);
  expect(await actions({ since: '2099-01-01T00:00:00Z' })).toEqual([]);
});

test('an upgrade is noted once, with who began it and what became of it', async () => {
  const journal = {
    ...newJournal({ kind: 'upgrade', from: '1.0.0', to: '1.1.0', file: null, restores: null, step: 'fetch' }),
    ...{ outcome: 'undone' as const, ended_at: new Date().toISOString(), by: 'Operator (alice)' },
  };
  await Promise.all([1, 2, 3].map(() => noteUpgrade(service.platform.database, journal)));
  const filter = { action: 'installation.upgrade_undone' };
  const { data } = (await operator.data(ACTIVITY, { filter })).listInstallationActivity;
  expect(data).toMatchObject([{ actor: { name: 'Operator (alice)' }, resource_name: '1.0.0 → 1.1.0' }]);
});

async function download(format: string, filter: object = {}): Promise<Response> {
  const { url } = (await operator.data(EXPORT, { format, filter })).exportInstallationActivity;
  return fetch(service.url + url);
}

test('a name that is a formula is a text in the export, and everything else is as it was', async () => {
  const names = [
    '=HYPERLINK("http://example.com")',
    '+1',
    '-1',
    '@SUM(A1)',
    '\t=1',
    ' =1',
    '＝1',
    'a,"b"\nc',
    'Zoë 🚀',
    '',
  ];
  for (const name of names) await enter('test.named', { name });
  const answer = await download('csv', { action: 'test.named' });
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  expect(answer.headers.get('content-disposition')).toMatch(/^attachment; filename="activity-\d{4}-\d\d-\d\d\.csv"$/);
  const text = Buffer.from(await answer.arrayBuffer()).toString('utf8');
  expect(text.startsWith('\uFEFF')).toBe(true);
  const [head, ...rows] = parseCsv(byteOrderMarkless(text));
  const at = head?.indexOf('resource_name') ?? -1;
  const shown = rows.map((row) => row[at]);
  expect(shown).toEqual(names.map((name) => (/^\s*[=+\-@＝]/.test(name) ? `'${name}` : name)));
  const lines = (await (await download('jsonl', { action: 'test.named' })).text()).trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).resource_name)).toEqual(names);
});

test('an export is read a batch at a time, whole and in order', async () => {
  await service.sql(
    `insert into activity (id, action, actor, resource_type, resource_id, created_at)
      select 'act_0' || lpad(n::text, 25, '0'), 'test.many', '{"type": "system", "id": null, "name": "Platform"}', 'x',
        n::text, now() from generate_series(1, 3500) n`,
  );
  const query = jest.spyOn(service.platform.database, 'query');
  const text = await (await download('jsonl', { action: 'test.many' })).text();
  const sizes = await Promise.all(query.mock.results.map(async ({ value }) => ((await value) as unknown[]).length));
  query.mockRestore();
  expect(Math.max(...sizes)).toBe(1_000);
  const found = text
    .trimEnd()
    .split('\n')
    .map((line) => Number(JSON.parse(line).resource_id));
  expect(found).toEqual(Array.from({ length: 3_500 }, (_, index) => index + 1));
});

test('an address of an export ends with its time, with the role, and with any change of it', async () => {
  const { url, expires_at } = (await operator.data(EXPORT, { format: 'csv' })).exportInstallationActivity;
  expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(300_000);
  const status = async (place: string): Promise<number> => (await fetch(service.url + place)).status;
  expect(await status(url)).toBe(200);
  expect(await status(url.slice(0, -4))).toBe(404);
  expect(await status('/downloads/activity/x')).toBe(404);
  // Made in the past: ids of the process never go back from what was the future.
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 301_000);
  const { url: old } = (await operator.data(EXPORT, { format: 'csv' })).exportInstallationActivity;
  now.mockRestore();
  expect(await status(old)).toBe(404);
  await service.sql('update users set is_operator = false where id = $1', [operator.user.id]);
  expect(await status(url)).toBe(404);
  await service.sql('update users set is_operator = true where id = $1', [operator.user.id]);
  const filter = { action: 'installation.activity_exported' };
  const { data } = (await operator.data(ACTIVITY, { filter })).listInstallationActivity;
  expect(data[0]).toMatchObject({ actor: { id: operator.user.id }, resource_name: 'csv' });
});
