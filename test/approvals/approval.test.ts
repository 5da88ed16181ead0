// Calls that destroy and need a second person: who asks, who decides, and that an approved call passes exactly once.
import { Secret, TOTP } from 'otpauth';
import { newBrowser, PASSWORD, type Browser } from '../support/identity/browser';
import { startService, type Answer, type CallOptions, type TestService } from '../support/service';

let service: TestService;
let owner: Browser & { user: { id: string; email: string } };
let second: typeof owner;
let key: string;

beforeAll(async () => {
  service = await startService();
  owner = await newBrowser(service, 'first@example.com', 'owner');
  second = await newBrowser(service, 'second@example.com', 'owner');
  key = await service.mintKey({ role: 'developer' });
});
afterAll(() => service.close());
beforeEach(() => setMode('keys'));

const setMode = (mode: string): Promise<unknown> =>
  service.sql('update projects set approval_required_for = $2 where id = $1', [service.project, mode]);
const APPROVE = `mutation ($id: ID!, $code: String) {
  approveCall(id: $id, input: { code: $code }) { id status expires_at decided_by { id } } }`;
const REFUSE = 'mutation ($id: ID!) { refuseCall(id: $id) { status } }';
const DELETE = 'mutation ($id: ID!) { deleteVolume(id: $id) }';
const GET = `query ($id: ID!) { getApproval(id: $id) { status operation summary input { name value } if_match
  resource { type id name } affects { type count } requested_by { name } key_id decided_by { id } url used_at } }`;

let count = 0;
async function newVolume(): Promise<string> {
  count += 1;
  const body = { name: `volume-${count}`, size_gb: 1 };
  return (await service.call('POST', '/v2/volumes', { body })).body.id as string;
}

const remove = (id: string, options: CallOptions = {}): Promise<Answer> =>
  service.call('DELETE', `/v2/volumes/${id}`, { key, ...options });
const isThere = async (id: string): Promise<boolean> => (await service.call('GET', `/v2/volumes/${id}`)).status === 200;
const approvals = (): Promise<{ id: string }[]> => service.sql('select id from approvals');

/** Asks, and answers the id of the approval. */
async function ask(id: string, options: CallOptions = {}): Promise<string> {
  const { status, body } = await remove(id, options);
  expect([status, body.code]).toEqual([403, 'approval_required']);
  expect(body.approval_url).toBe(
    `${service.platform.config.baseUrl}/projects/${service.project}/approvals/${body.approval_id}`,
  );
  return body.approval_id as string;
}

describe('a call of a key', () => {
  test('is not made by the way of a revert that destroys', async () => {
    const application = (await service.call('POST', '/v2/applications', { body: { name: 'reverted' } })).body.id;
    const target = `/v2/applications/${application}/env/ONE`;
    expect((await service.call('PUT', target, { body: { value: '1' } })).status).toBe(201);
    const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?limit=1`);
    const reverted = await service.call('POST', `/v2/activity/${body.data[0].id}/revert`, { key });
    expect([reverted.status, reverted.body.code]).toEqual([409, 'not_revertible']);
    expect(reverted.body.detail).toContain('requires an approval for deleteEnvironmentVariable');
  });

  test('waits, is shown with what it would do, and passes once after a second person has approved it', async () => {
    const volume = await newVolume();
    const approval = await ask(volume);
    expect(await ask(volume)).toBe(approval);
    expect(await isThere(volume)).toBe(true);
    const { getApproval: shown } = await second.data(GET, { id: approval });
    expect(shown).toMatchObject({
      ...{ status: 'pending', operation: 'deleteVolume', summary: expect.stringContaining('volume'), used_at: null },
      input: [{ name: 'id', value: `"${volume}"` }],
      resource: { type: 'volume', id: volume, name: `volume-${count}` },
      affects: [{ type: 'volume', count: 1 }],
    });
    const { approveCall: approved } = await second.data(APPROVE, { id: approval });
    expect(approved).toMatchObject({ status: 'approved', decided_by: { id: second.user.id } });
    expect((Date.parse(approved.expires_at) - Date.now()) / 60_000).toBeCloseTo(60, 0);
    expect((await remove(volume)).status).toBe(204);
    expect((await second.data(GET, { id: approval })).getApproval.status).toBe('used');
    // It is gone, which a rehearsal finds before anybody is asked again.
    expect((await remove(volume)).status).toBe(404);
  });

  test('is bound to key, operation, resource, If-Match and body, over both faces', async () => {
    const [volume, other] = [await newVolume(), await newVolume()];
    const approval = await ask(volume);
    await second.data(APPROVE, { id: approval });
    const another = await service.mintKey({ role: 'developer' });
    const different = [
      await ask(other),
      await ask(volume, { key: another }),
      await ask(volume, { headers: { 'If-Match': '*' } }),
    ];
    expect(new Set([approval, ...different]).size).toBe(4);
    const { data } = await service.graphql(DELETE, { id: volume }, { key });
    expect(data).toEqual({ deleteVolume: true });
  });

  test('that would fail anyway fails at once, and asks nobody', async () => {
    const before = (await approvals()).length;
    expect((await remove('vol_01h455vb4pex5vsknk084sn02q')).body.code).toBe('not_found');
    const volume = await newVolume();
    const stale = await remove(volume, { headers: { 'If-Match': '"99"' } });
    expect(stale.body.code).toBe('precondition_failed');
    const forbidden = await service.mintKey({ may_destroy: false });
    expect((await remove(volume, { key: forbidden })).body.code).toBe('destroy_not_allowed');
    expect((await approvals()).length).toBe(before);
  });

  test('needs none for a dry run, for what does not destroy, and in a project that does not want it', async () => {
    const volume = await newVolume();
    expect((await remove(volume, { headers: { 'Dry-Run': 'true' } })).status).toBe(204);
    expect((await service.call('PATCH', `/v2/volumes/${volume}`, { key, body: { size_gb: 2 } })).status).toBe(200);
    await setMode('none');
    expect((await remove(volume)).status).toBe(204);
  });

  test('repeated twice at once passes once', async () => {
    const { body: zone } = await service.call('POST', '/v2/dns_zones', { body: { name: 'races.example.com' } });
    const body = { zone_file: 'a 300 IN A 192.0.2.2', mode: 'replace' };
    const replace = (): Promise<Answer> => service.call('POST', `/v2/dns_zones/${zone.id}/import`, { key, body });
    const { body: refused } = await replace();
    await second.data(APPROVE, { id: refused.approval_id });
    const answers = await Promise.all([replace(), replace(), replace()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403]);
    for (const answer of answers.filter(({ status }) => status === 403))
      expect(answer.body.code).toBe('approval_required');
  });

  test('with an Idempotency-Key is answered again without another approval', async () => {
    const { body: zone } = await service.call('POST', '/v2/dns_zones', { body: { name: 'again.example.com' } });
    const options = {
      ...{ key, body: { zone_file: 'a 300 IN A 192.0.2.2', mode: 'replace' } },
      headers: { 'Idempotency-Key': 'import-1' },
    };
    const path = `/v2/dns_zones/${zone.id}/import`;
    const { body: refused } = await service.call('POST', path, options);
    expect(refused.code).toBe('approval_required');
    await second.data(APPROVE, { id: refused.approval_id });
    const made = await service.call('POST', path, options);
    const repeated = await service.call('POST', path, options);
    expect([made.status, repeated.status]).toEqual([200, 200]);
    expect(repeated.headers.get('Idempotent-Replayed')).toBe('true');
  });

  test('that failed after its approval keeps the approval', async () => {
    const volume = await newVolume();
    const approval = await ask(volume);
    await second.data(APPROVE, { id: approval });
    const { body: application } = await service.call('POST', '/v2/applications', { body: { name: 'keeper' } });
    const attached = await service.call('PATCH', `/v2/volumes/${volume}`, {
      body: { application_id: application.id, mount_path: '/data' },
    });
    expect(attached.status).toBe(200);
    expect((await remove(volume)).body.code).toBe('resource_in_use');
    await service.call('PATCH', `/v2/volumes/${volume}`, { body: { application_id: null } });
    expect((await remove(volume)).status).toBe(204);
  });
});

describe('who decides', () => {
  test('an owner who has not asked; not a developer, not a key of the project', async () => {
    await setMode('all');
    const volume = await newVolume();
    const { extensions } = await owner.refused(DELETE, { id: volume });
    const id = extensions.approval_id as string;
    const own = await owner.refused(APPROVE, { id });
    expect([own.code, own.message]).toEqual(['role_not_permitted', expect.stringContaining('yourself')]);
    const developer = await newBrowser(service, 'developer@example.com', 'developer');
    expect((await developer.refused(APPROVE, { id })).code).toBe('role_not_permitted');
    const projectKey = await service.mintKey({ kind: 'project' });
    const byKey = await service.call('POST', `/v2/approvals/${id}/approve`, { key: projectKey, body: {} });
    expect(byKey.body.code).toBe('personal_key_required');
    // The key of a person proves nothing of who uses it.
    const personal = await service.call('POST', `/v2/approvals/${id}/approve`, { body: {} });
    expect(personal.body.code).toBe('dashboard_only');
    await second.data(APPROVE, { id });
    expect(await owner.data(DELETE, { id: volume })).toEqual({ deleteVolume: true });
  });

  test('who has two-factor shows it once more, and then may do it with a program too', async () => {
    const careful = await newBrowser(service, 'careful@example.com', 'owner');
    const { enrolTwoFactor: enrolled } = await careful.data(
      'mutation ($p: String!) { enrolTwoFactor(password: $p) { secret } }',
      { p: PASSWORD },
    );
    const totp = new TOTP({ secret: Secret.fromBase32(enrolled.secret) });
    // Each code counts once, and time passes slowly in a test.
    const newCode = async (): Promise<string> => {
      await service.sql('update users set totp_last_step = 0 where id = $1', [careful.user.id]);
      return totp.generate();
    };
    const { confirmTwoFactor: recovery } = await careful.data(
      'mutation ($c: String!) { confirmTwoFactor(code: $c) { codes } }',
      { c: await newCode() },
    );
    expect(recovery.codes).toHaveLength(10);
    const [first, next] = [await ask(await newVolume()), await ask(await newVolume())];
    for (const code of [null, '000000', '']) {
      const refused = await careful.refused(APPROVE, { id: first, code });
      expect([refused.code, refused.extensions.errors]).toEqual([
        'validation_failed',
        [expect.objectContaining({ field: 'code' })],
      ]);
    }
    await service.sql(
      'update users set code_failures = 0, code_retry_at = null, known_code_failures = 0, ' +
        'known_code_retry_at = null where id = $1',
      [careful.user.id],
    );
    await careful.data(APPROVE, { id: first, code: await newCode() });
    const { createPersonalKey: made } = await careful.data(
      'mutation { createPersonalKey(input: { name: "cli", scopes: ["read", "write"] }) { token } }',
    );
    const path = `/v2/approvals/${next}/approve`;
    expect((await service.call('POST', path, { key: made.token })).body.errors[0].field).toBe('code');
    const approved = await service.call('POST', path, { key: made.token, body: { code: await newCode() } });
    expect([approved.status, approved.body.status]).toEqual([200, 'approved']);
  });

  test('the only owner of a project decides about their own call, since nobody else can', async () => {
    const alone = await newBrowser(service, 'alone@example.com');
    const { createProject: project } = await alone.data('mutation { createProject(input: { name: "Alone" }) { id } }');
    const CHANGE = `mutation ($id: ID!, $to: ApprovalRequirement!) {
      updateProject(id: $id, input: { approval_required_for: $to }) { approval_required_for } }`;
    await alone.data(CHANGE, { id: project.id, to: 'keys' });
    // Lowering it needs an approval whoever asks, raising it none.
    await alone.data(CHANGE, { id: project.id, to: 'keys' });
    const { code, extensions } = await alone.refused(CHANGE, { id: project.id, to: 'none' });
    expect(code).toBe('approval_required');
    await alone.data(APPROVE, { id: extensions.approval_id });
    const lowered = await alone.data(CHANGE, { id: project.id, to: 'none' });
    expect(lowered.updateProject.approval_required_for).toBe('none');
  });

  test('a refusal holds for the repetition, and nothing is decided twice', async () => {
    const volume = await newVolume();
    const id = await ask(volume);
    await second.data(REFUSE, { id });
    const repeated = await remove(volume);
    expect([repeated.body.approval_id, repeated.body.detail]).toEqual([id, 'Somebody has refused this call.']);
    for (const decision of [APPROVE, REFUSE])
      expect((await owner.refused(decision, { id })).code).toBe('invalid_state');
    await service.sql(`update approvals set expires_at = now() where id = $1`, [id]);
    expect(await ask(volume)).not.toBe(id);
    expect((await second.data(GET, { id })).getApproval.status).toBe('refused');
  });

  test('an approval ends with its time, and with the role of who gave it', async () => {
    const passing = await newBrowser(service, 'passing@example.com', 'owner');
    const [late, orphaned] = [await newVolume(), await newVolume()];
    const [lateId, orphanedId] = [await ask(late), await ask(orphaned)];
    await second.data(APPROVE, { id: lateId });
    await service.sql(`update approvals set expires_at = now() where id = $1`, [lateId]);
    expect((await second.data(GET, { id: lateId })).getApproval.status).toBe('expired');
    expect(await ask(late)).not.toBe(lateId);
    await passing.data(APPROVE, { id: orphanedId });
    await owner.data(
      `mutation ($p: ID!, $u: ID!) { changeMemberRole(project_id: $p, user_id: $u, role: developer) { role } }`,
      {
        p: service.project,
        u: passing.user.id,
      },
    );
    expect(await ask(orphaned)).not.toBe(orphanedId);
    expect([await isThere(late), await isThere(orphaned)]).toEqual([true, true]);
  });

  test('a call whose key was revoked can no longer be approved', async () => {
    const lost = await service.mintKey({ role: 'developer' });
    const volume = await newVolume();
    const id = await ask(volume, { key: lost });
    await service.sql(
      'update api_keys set revoked_at = now() where id = (select key_id from approvals where id = $1)',
      [id],
    );
    expect((await second.refused(APPROVE, { id })).message).toContain('revoked');
  });

  test('a stranger sees no approval, and a viewer decides nothing', async () => {
    const id = await ask(await newVolume());
    const stranger = await service.newProject({ stranger: true });
    const seen = await service.call('GET', `/v2/approvals/${id}`, { key: stranger.key, project: stranger.id });
    expect(seen.status).toBe(404);
    const viewer = await service.mintKey({ role: 'viewer' });
    expect((await service.call('GET', `/v2/approvals/${id}`, { key: viewer })).status).toBe(200);
    expect((await service.call('POST', `/v2/approvals/${id}/refuse`, { key: viewer })).body.code).toBe(
      'role_not_permitted',
    );
  });
});

describe('an owner whom the asker has made', () => {
  const since = (who: { id: string }, hours: number): Promise<unknown> =>
    service.sql(
      'update members set owner_since = now() - make_interval(hours => $3) where project_id = $1 and user_id = $2',
      [service.project, who.id, hours],
    );

  test('approves nothing on the first day, and who has removed the others does not approve alone', async () => {
    await service.sql(`update members set owner_since = now() - interval '2 days' where project_id = $1`, [
      service.project,
    ]);
    await since(second.user, 1);
    const id = await ask(await newVolume());
    const refused = await second.refused(APPROVE, { id });
    expect([refused.code, refused.message]).toEqual(['role_not_permitted', expect.stringContaining('today')]);
    expect((await owner.data(APPROVE, { id })).approveCall.status).toBe('approved');

    await setMode('all');
    const place = `/v2/volumes/${await newVolume()}`;
    const asked = await owner.refused(DELETE, { id: place.split('/').at(-1) });
    const { approval_id: own } = asked.extensions as { approval_id: string };
    const others = 'delete from members where project_id = $1 and user_id <> $2';
    await service.sql(others, [service.project, owner.user.id]);
    await service.sql(
      `insert into activity (id, project_id, account_id, action, actor, actor_id, resource_type, resource_id,
          created_at)
        select 'act_01h455vb4pex5vsknk084sn02q', project_id, account_id, 'member.removed', actor, actor_id, 'member',
          'm', now() from activity where project_id = $1 limit 1`,
      [service.project],
    );
    expect((await owner.refused(APPROVE, { id: own })).code).toBe('role_not_permitted');
    await service.sql(`delete from activity where action in ('member.removed', 'member.role_changed')`);
    expect((await owner.data(APPROVE, { id: own })).approveCall.status).toBe('approved');
  });
});
