/** @tier heavy @quarter 3 @covers server/operator/audit.ts server/operator/terminal_activity.ts */
/** @user any */
// What operators do at the terminal stands in the activity, which the command prints for other programs.
import { parseCsv } from '../support/csv';
import { json, run, setUpCommand } from '../support/processes/operator_command';

setUpCommand();

interface Entry {
  action: string;
  actor_type: string;
  actor_id: string | null;
  actor_name: string;
  project_id: string | null;
  resource_id: string;
  resource_name: string | null;
}

async function audit(...words: string[]): Promise<Entry[]> {
  const { code, out, err } = await run(['audit', ...words]);
  expect([code, err]).toEqual([0, '']);
  return out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry);
}

test('keys, users, roles and projects that are made at the terminal are printed with who made them', async () => {
  const email = 'second@example.com';
  const {
    data: [user],
    password,
  } = await json(['user', 'create', '--email', email, '--name', '=1+1']);
  const {
    data: [project],
  } = await json(['project', 'create', '--user', email, '--name', 'Shop']);
  const {
    data: [key],
    token,
  } = await json(['key', 'create', '--user', email, '--name', 'CI']);
  const {
    data: [of],
  } = await json(['key', 'create', '--project', project.id]);
  await json(['user', 'grant-operator', '--email', email]);
  await json(['user', 'revoke-operator', '--email', email]);
  await json(['key', 'revoke', key.id]);
  await run(['key', 'revoke', key.id.replace(/.$/, 'x')]);
  const found = (await audit('--since', '1d', '--person', 'Operator (')).map((entry) => [
    entry.action,
    entry.resource_id,
    entry.project_id,
  ]);
  expect(found).toEqual([
    ['user.created', user.id, null],
    ['project.created', project.id, project.id],
    ['api_key.created', key.id, null],
    ['api_key.created', of.id, project.id],
    ['user.operator_granted', user.id, null],
    ['user.operator_revoked', user.id, null],
    ['api_key.revoked', key.id, null],
  ]);
  const { out } = await run(['audit']);
  for (const secret of [token, password]) expect(out).not.toContain(secret);
}, 240_000);

test('as CSV it opens in a spreadsheet without running what a user is called', async () => {
  const { out } = await run(['audit', '--action', 'user.created', '--format', 'csv']);
  const [head, ...rows] = parseCsv(out.replace(/^\uFEFF/, ''));
  expect(rows.map((row) => row[head?.indexOf('resource_name') ?? 0])).toContain("'=1+1");
});

test('wrong options are refused before anything is printed', async () => {
  for (const words of [
    ['--format', 'xml'],
    ['--since', 'yesterday'],
    ['--project', "x' or 1=1"],
  ])
    expect(await run(['audit', ...words])).toMatchObject({ code: 2, out: '' });
});

test('what uses the disk is not measured by the command', async () => {
  const began = new Date().toISOString();
  const { data } = (await json(['disk'])) as { data: { measured_at: string }[] };
  expect(data.filter(({ measured_at }) => measured_at > began)).toEqual([]);
});
