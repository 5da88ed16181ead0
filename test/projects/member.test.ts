import { startService, type TestService } from '../support/service';
import { browser, newBrowser, newUser, PASSWORD, type Browser } from '../support/identity/browser';

let service: TestService;
let owner: Awaited<ReturnType<typeof newBrowser>>;
let developer: Awaited<ReturnType<typeof newBrowser>>;
let stranger: Awaited<ReturnType<typeof newBrowser>>;
beforeAll(async () => {
  service = await startService();
  owner = await newBrowser(service, 'owner2@example.com', 'owner');
  developer = await newBrowser(service, 'developer@example.com', 'developer');
  stranger = await newBrowser(service, 'stranger@example.com');
});
afterAll(() => service.close());

const LIST = 'query ($id: ID!) { listMembers(project_id: $id) { data { user_id email role } next_cursor } }';
const INVITE = `mutation ($id: ID!, $input: InviteMemberInput!) { inviteMember(project_id: $id, input: $input) {
  invitation { id project_id email role invited_by expires_at } token } }`;
const INVITATIONS = 'query ($id: ID!) { listInvitations(project_id: $id) { data { id email } next_cursor } }';
const WITHDRAW = 'mutation ($project: ID!, $id: ID!) { revokeInvitation(project_id: $project, id: $id) }';
const ACCEPT = `mutation ($input: AcceptInvitationInput!) { acceptInvitation(input: $input) {
  user { id email name } account { id } } }`;
const ROLE = `mutation ($project: ID!, $user: ID!, $role: Role!) {
  changeMemberRole(project_id: $project, user_id: $user, role: $role) { user_id role } }`;
const REMOVE = 'mutation ($project: ID!, $user: ID!) { removeMember(project_id: $project, user_id: $user) }';

const members = async (): Promise<Record<string, string>> => {
  const { data } = (await owner.data(LIST, { id: service.project })).listMembers as {
    data: { email: string; role: string }[];
  };
  return Object.fromEntries(data.map(({ email, role }) => [email, role]));
};
const invite = async (
  email: string,
  role = 'viewer',
  one: Browser = owner,
): Promise<{ token: string; invitation: { id: string } }> =>
  (await one.data(INVITE, { id: service.project, input: { email, role } })).inviteMember;
const accept = (token: string): { input: object } => ({ input: { token, name: 'New Person', password: PASSWORD } });

test('members see each other, strangers see no project', async () => {
  expect(await members()).toMatchObject({ 'owner2@example.com': 'owner', 'developer@example.com': 'developer' });
  expect((await developer.data(LIST, { id: service.project })).listMembers.data.length).toBeGreaterThan(2);
  expect((await stranger.refused(LIST, { id: service.project })).code).toBe('project_not_found');
  expect((await stranger.refused(LIST, { id: 'prj_nonsense' })).code).toBe('project_not_found');
});

test('an invited person becomes a user with an account of their own, is a member, and is logged in', async () => {
  const { token, invitation } = await invite('New.Person@Example.com', 'developer');
  expect(invitation).toMatchObject({
    project_id: service.project,
    email: 'new.person@example.com',
    role: 'developer',
    invited_by: owner.user.id,
  });
  const one = browser(service);
  const { user, account } = (await one.data(ACCEPT, accept(token))).acceptInvitation;
  expect(user).toMatchObject({ email: 'new.person@example.com', name: 'New Person' });
  expect((await members())['new.person@example.com']).toBe('developer');
  expect((await one.data('{ viewer { account { id } } }')).viewer.account.id).toBe(account.id);
  const [inviting] = await service.sql('select account_id from users where id = $1', [owner.user.id]);
  expect(account.id).not.toBe(inviting.account_id);
  expect((await browser(service).logIn('new.person@example.com')).errors).toBeUndefined();
  expect((await browser(service).refused(ACCEPT, accept(token))).code).toBe('not_found');
});

test('somebody with a user accepts when logged in, under the invited e-mail, and keeps the account', async () => {
  const one = await newBrowser(service, 'existing@example.com');
  const { token } = await invite('existing@example.com', 'viewer');
  expect((await browser(service).refused(ACCEPT, accept(token))).code).toBe('session_required');
  expect((await stranger.refused(ACCEPT, { input: { token } })).extensions.errors).toMatchObject([{ field: 'token' }]);
  const [before] = await service.sql('select account_id from users where id = $1', [one.user.id]);
  const { account } = (await one.data(ACCEPT, { input: { token } })).acceptInvitation;
  expect(account.id).toBe(before.account_id);
  expect((await members())['existing@example.com']).toBe('viewer');
});

test('a new user needs a name and a good password, and a refused try leaves the invitation open', async () => {
  const { token } = await invite('careful@example.com');
  const one = browser(service);
  expect((await one.refused(ACCEPT, { input: { token } })).extensions.errors).toMatchObject([
    { field: 'name', code: 'required' },
    { field: 'password', code: 'required' },
  ]);
  expect(
    (await one.refused(ACCEPT, { input: { token, name: 'A', password: 'short' } })).extensions.errors,
  ).toMatchObject([{ field: 'password', code: 'too_short' }]);
  await one.data(ACCEPT, accept(token));
});

test('of one invitation accepted twice at once, one counts', async () => {
  const { token } = await invite('twice@example.com');
  const answers = await Promise.all([
    browser(service).run(ACCEPT, accept(token)),
    browser(service).run(ACCEPT, accept(token)),
  ]);
  expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
  expect(await service.sql(`select id from users where email = 'twice@example.com'`)).toHaveLength(1);
});

test('only owners invite, see and withdraw invitations', async () => {
  const { invitation, token } = await invite('withdrawn@example.com');
  const calls: [string, Record<string, unknown>][] = [
    [INVITE, { id: service.project, input: { email: 'x@example.com', role: 'viewer' } }],
    [INVITATIONS, { id: service.project }],
    [WITHDRAW, { project: service.project, id: invitation.id }],
  ];
  for (const [query, variables] of calls) {
    expect(await developer.refused(query, variables)).toMatchObject({
      code: 'role_not_permitted',
      extensions: { required_role: 'owner' },
    });
    expect((await stranger.refused(query, variables)).code).toBe('project_not_found');
  }
  expect((await owner.data(INVITATIONS, { id: service.project })).listInvitations.data).toContainEqual({
    id: invitation.id,
    email: 'withdrawn@example.com',
  });
  await owner.data(WITHDRAW, { project: service.project, id: invitation.id });
  expect((await browser(service).refused(ACCEPT, accept(token))).code).toBe('not_found');
});

test('a new invitation voids the old one, a member is not invited, an old one is over', async () => {
  const old = await invite('again@example.com');
  const { token } = await invite('again@example.com');
  expect((await browser(service).refused(ACCEPT, accept(old.token))).code).toBe('not_found');
  await service.sql(
    `update invitations set expires_at = now() - interval '1 second' where email = 'again@example.com'`,
  );
  expect((await browser(service).refused(ACCEPT, accept(token))).code).toBe('not_found');
  expect(
    (await owner.refused(INVITE, { id: service.project, input: { email: 'developer@example.com', role: 'owner' } }))
      .code,
  ).toBe('already_exists');
});

test('a changed role counts at once', async () => {
  const one = await newBrowser(service, 'promoted@example.com', 'viewer');
  const { token } = (
    await one.data('mutation { createPersonalKey(input: { name: "k", scopes: ["read", "write"] }) { token } }')
  ).createPersonalKey;
  const write = (): Promise<number> =>
    service
      .call('POST', '/v2/volumes', { key: token, body: { name: 'promotion', size_gb: 1 } })
      .then(({ status }) => status);
  expect(await write()).toBe(403);
  const variables = { project: service.project, user: one.user.id, role: 'developer' };
  expect((await developer.refused(ROLE, variables)).code).toBe('role_not_permitted');
  expect((await owner.data(ROLE, variables)).changeMemberRole).toEqual({ user_id: one.user.id, role: 'developer' });
  expect(await write()).toBe(201);
  await owner.data(REMOVE, { project: service.project, user: one.user.id });
  expect(await write()).toBe(404);
});

test('members leave by themselves and remove nobody else', async () => {
  const one = await newBrowser(service, 'leaving@example.com', 'viewer');
  expect((await one.refused(REMOVE, { project: service.project, user: developer.user.id })).code).toBe(
    'role_not_permitted',
  );
  await one.data(REMOVE, { project: service.project, user: one.user.id });
  expect(await members()).not.toHaveProperty('leaving@example.com');
  expect((await owner.refused(REMOVE, { project: service.project, user: one.user.id })).code).toBe('not_found');
});

test('the last owner stays, also when two leave at once', async () => {
  const { id } = await service.newProject({ stranger: true });
  await service.sql('delete from members where project_id = $1', [id]);
  const [one, two] = [await newBrowser(service, 'first@example.com'), await newBrowser(service, 'second@example.com')];
  for (const { user } of [one, two])
    await service.sql(`insert into members (project_id, user_id, role) values ($1, $2, 'owner')`, [id, user.id]);
  const answers = await Promise.all([
    one.run(REMOVE, { project: id, user: one.user.id }),
    two.run(REMOVE, { project: id, user: two.user.id }),
  ]);
  expect(answers.map(({ errors }) => errors?.[0].extensions.code ?? 'done').sort()).toEqual([
    'done',
    'resource_protected',
  ]);
  const last = answers[0]?.errors ? one : two;
  expect((await last.refused(ROLE, { project: id, user: last.user.id, role: 'viewer' })).code).toBe(
    'resource_protected',
  );
  expect((await last.data(ROLE, { project: id, user: last.user.id, role: 'owner' })).changeMemberRole.role).toBe(
    'owner',
  );
});

test('the number of members and invitations is limited', async () => {
  const { id } = await service.newProject();
  await service.sql(`insert into members (project_id, user_id, role) values ($1, $2, 'owner')`, [id, owner.user.id]);
  await service.sql(
    `insert into invitations (id, project_id, email, role, hash, invited_by, expires_at)
     select 'inv_' || n, $1, n || '@example.com', 'viewer', 'hash ' || n, $2, now() + interval '1 day'
       from generate_series(1, 198) n`,
    [id, owner.user.id],
  );
  const refused = await owner.refused(INVITE, { id, input: { email: 'many@example.com', role: 'viewer' } });
  expect(refused).toMatchObject({ code: 'quota_exceeded', extensions: { resource: 'members', used: 200, limit: 200 } });
});

test('what happened stands in the activity of the project, without e-mails and tokens', async () => {
  const user = await newUser(service, 'noted@example.com');
  const one = browser(service);
  await one.logIn('noted@example.com');
  const { token } = await invite('noted@example.com');
  await one.data(ACCEPT, { input: { token } });
  const entries = await service.sql(
    'select project_id, action, actor_id, changed_fields from activity where resource_id = $1',
    [user.id],
  );
  expect(entries).toEqual([
    { project_id: service.project, action: 'member.joined', actor_id: user.id, changed_fields: ['role'] },
  ]);
  const stored = JSON.stringify(await service.sql('select * from activity'));
  expect(stored).not.toContain(token);
  expect(stored).not.toContain('noted@example.com');
  expect(JSON.stringify(await service.sql('select * from invitations'))).not.toContain(token);
});

test('who became an owner today ends no older owner, nor leaves one the project to them', async () => {
  const { id } = await service.newProject();
  const old = await newBrowser(service, 'old@example.com');
  const fresh = await newBrowser(service, 'fresh@example.com');
  const join = `insert into members (project_id, user_id, role, owner_since)
    values ($1, $2, 'owner', now() - make_interval(hours => $3))`;
  await service.sql('delete from members where project_id = $1', [id]);
  await service.sql(join, [id, old.user.id, 25]);
  await service.sql(join, [id, fresh.user.id, 23]);
  const end = (one: typeof old, user: string): Promise<{ code: string }> => one.refused(REMOVE, { project: id, user });
  expect((await end(fresh, old.user.id)).code).toBe('resource_protected');
  expect((await end(old, old.user.id)).code).toBe('resource_protected');
  const demotion = { project: id, user: old.user.id, role: 'viewer' };
  expect((await fresh.refused(ROLE, demotion)).code).toBe('resource_protected');
  await service.sql(`update members set owner_since = now() - interval '25 hours' where project_id = $1`, [id]);
  expect((await old.data(REMOVE, { project: id, user: old.user.id })).removeMember).toBe(true);
});
