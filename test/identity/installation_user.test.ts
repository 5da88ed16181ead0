// Users of the installation and their sessions, for its operators.
import { mintId } from '../../core/ids';
import { newBrowser, type Browser } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';

const USERS = `query ($search: String, $limit: Int, $cursor: String) {
  listInstallationUsers(search: $search, limit: $limit, cursor: $cursor) { next_cursor data { id email is_operator
    sessions keys projects last_seen_at two_factor_enabled } } }`;
const SESSIONS = 'query ($id: ID!) { listUserSessions(user_id: $id) { data { id address current } } }';
const END = 'mutation ($id: ID!) { endUserSessions(user_id: $id) { count } }';

let service: TestService;
let operator: Browser & { user: { id: string } };
let tenant: Browser & { user: { id: string } };
beforeAll(async () => {
  service = await startService();
  operator = await newBrowser(service, 'operator@example.com');
  tenant = await newBrowser(service, 'tenant_1@example.com', 'owner');
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

test('users are found by a part of what they are called, and wildcards are letters', async () => {
  const all = (await operator.data(USERS, {})).listInstallationUsers.data;
  expect(all.map(({ email }: { email: string }) => email)).toEqual(
    expect.arrayContaining(['operator@example.com', 'tenant_1@example.com']),
  );
  const [found, ...others] = (await operator.data(USERS, { search: 'TENANT_1' })).listInstallationUsers.data;
  expect(others).toEqual([]);
  expect(found).toMatchObject({ is_operator: false, sessions: 1, keys: 0, projects: 1, two_factor_enabled: false });
  expect(Date.parse(found.last_seen_at)).toBeGreaterThan(Date.now() - 60_000);
  for (const search of ['%', 'o%r@', '\\', "'; drop table users; --"])
    expect((await operator.data(USERS, { search })).listInstallationUsers.data).toEqual([]);
  const byId = await operator.data(USERS, { search: tenant.user.id });
  expect(byId.listInstallationUsers.data).toHaveLength(1);
});

test('the list asks as often for many rows as for one', async () => {
  for (let index = 0; index < 12; index += 1) await service.newProject({ stranger: true });
  const count = (limit: number) => queriesOf(() => operator.data(USERS, { limit }));
  expect(await count(12)).toBe(await count(1));
});

test('pages follow each other without an overlap', async () => {
  const seen: string[] = [];
  for (let cursor: string | null = null; ;) {
    const { data, next_cursor }: { data: { id: string }[]; next_cursor: string | null } = (
      await operator.data(USERS, { limit: 5, cursor })
    ).listInstallationUsers;
    seen.push(...data.map(({ id }) => id));
    cursor = next_cursor;
    if (cursor === null) break;
  }
  expect(new Set(seen).size).toBe(seen.length);
  const [{ count }] = await service.sql('select count(*)::int as count from users');
  expect(seen).toHaveLength(count);
  expect((await operator.refused(USERS, { cursor: 'forged' })).code).toBe('invalid_cursor');
});

test('an operator ends the sessions of a person at once, keeps their own, and both stand in the activity', async () => {
  expect((await operator.data(SESSIONS, { id: tenant.user.id })).listUserSessions.data).toMatchObject([
    { current: false },
  ]);
  expect((await operator.data(END, { id: tenant.user.id })).endUserSessions.count).toBe(1);
  expect((await tenant.refused('{ viewer { user { id } } }')).code).toBe('session_required');
  expect((await operator.data(END, { id: operator.user.id })).endUserSessions.count).toBe(0);
  expect((await operator.refused(END, { id: mintId('usr') })).code).toBe('not_found');
  const entries = await service.sql(
    `select actor_id, resource_id from activity where action = 'installation.sessions_ended' order by id desc`,
  );
  expect(entries).toEqual([
    { actor_id: operator.user.id, resource_id: operator.user.id },
    { actor_id: operator.user.id, resource_id: tenant.user.id },
  ]);
});
