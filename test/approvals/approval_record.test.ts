// What is kept of a call that waits for a second person, and who reads of it.
import { newBrowser, type Browser } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';

let service: TestService;
let second: Browser;
let key: string;

beforeAll(async () => {
  service = await startService();
  second = await newBrowser(service, 'second@example.com', 'owner');
  key = await service.mintKey({ role: 'developer' });
  await service.sql(`update projects set approval_required_for = 'keys' where id = $1`, [service.project]);
});
afterAll(() => service.close());

const APPROVE = 'mutation ($id: ID!) { approveCall(id: $id) { status } }';
const GET = 'query ($id: ID!) { getApproval(id: $id) { input { name value } } }';

test('the input is sealed in the database, and what looks like a secret is masked', async () => {
  const { body: zone } = await service.call('POST', '/v2/dns_zones', { body: { name: 'sealed.example.com' } });
  const zone_file = 'a 300 IN TXT "hidden words"';
  const { body } = await service.call('POST', `/v2/dns_zones/${zone.id}/import`, {
    key,
    body: { zone_file, mode: 'replace' },
  });
  const rows = await service.sql<{ row: string }>('select a::text as row from approvals a where id = $1', [
    body.approval_id,
  ]);
  expect(rows[0]?.row).not.toContain('hidden words');
  const { getApproval: shown } = await second.data(GET, { id: body.approval_id });
  expect(shown.input).toContainEqual({ name: 'input.mode', value: '"replace"' });
  expect(shown.input).toContainEqual({ name: 'input.zone_file', value: JSON.stringify(zone_file) });
});

test('the activity says who asked and who decided, and a project that waits can be deleted', async () => {
  const mine = await newBrowser(service, 'mine@example.com');
  const { createProject: project } = await mine.data('mutation { createProject(input: { name: "Mine" }) { id } }');
  await service.sql(`update projects set approval_required_for = 'all' where id = $1`, [project.id]);
  const GO = 'mutation ($id: ID!) { deleteProject(id: $id) }';
  const { extensions } = await mine.refused(GO, { id: project.id });
  await mine.data(APPROVE, { id: extensions.approval_id });
  const { listProjectActivity: activity } = await mine.data(
    'query ($id: ID!) { listProjectActivity(id: $id) { data { action resource { type id name } } } }',
    { id: project.id },
  );
  expect(activity.data.slice(0, 2)).toMatchObject([
    { action: 'approval.approved', resource: { type: 'approval', id: extensions.approval_id } },
    { action: 'approval.requested', resource: { type: 'approval', name: 'deleteProject Mine' } },
  ]);
  expect(await mine.data(GO, { id: project.id })).toEqual({ deleteProject: true });
});

test('owners who have not asked get one mail each for a call, however often it is repeated', async () => {
  const mine = await newBrowser(service, 'asking@example.com', 'owner');
  const { body: volume } = await service.call('POST', '/v2/volumes', { body: { name: 'mailed', size_gb: 1 } });
  const { createPersonalKey: made } = await mine.data(
    'mutation { createPersonalKey(input: { name: "agent", scopes: ["read", "write"] }) { token } }',
  );
  const before = (await service.sql('select id from email_outbox')).map(({ id }) => id);
  for (let i = 0; i < 3; i++) {
    const { body } = await service.call('DELETE', `/v2/volumes/${volume.id}`, { key: made.token });
    expect(body.code).toBe('approval_required');
  }
  const mails = await service.sql<{ recipients: string[] }>('select recipients from email_outbox where id <> all($1)', [
    before,
  ]);
  const to = mails.map(({ recipients }) => recipients.join());
  expect(to).toContain('second@example.com');
  expect(to).not.toContain('asking@example.com');
  expect(new Set(to).size).toBe(to.length);
});
