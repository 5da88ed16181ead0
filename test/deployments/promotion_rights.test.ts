// Who may deploy what another application runs, and what is refused. Nothing runs here.
import { deployed } from '../support/deployments/deployed';
import { describeHost } from '../support/databases/databases';
import { startService, type Answer, type CallOptions, type TestService } from '../support/service';

let service: TestService;
let source: string;
let target: string;
let serial = 0;
beforeAll(async () => {
  service = await startService();
  await describeHost(service);
  source = await application();
  target = await application();
  await deployed(service, source);
});
afterAll(() => service.close());

async function application(options: CallOptions = {}): Promise<string> {
  const { body } = await service.call('POST', '/v2/applications', {
    ...options,
    body: { name: `app-${(serial += 1)}` },
  });
  return body.id;
}

const promote = (id: string, from: string, options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', `/v2/applications/${id}/promote`, { ...options, body: { source_application_id: from } });

test('a key with the scope deploy may, and one without it or of a viewer may not', async () => {
  expect((await promote(target, source, { key: await service.mintKey({ scopes: ['deploy'] }) })).status).toBe(201);
  const writing = await service.mintKey({ scopes: ['read', 'write'] });
  expect((await promote(target, source, { key: writing })).body.code).toBe('insufficient_scope');
  const viewer = await service.mintKey({ role: 'viewer' });
  expect((await promote(target, source, { key: viewer })).body.code).toBe('role_not_permitted');
});

test('what the caller cannot reach is answered like what is not there', async () => {
  const stranger = await service.newProject({ stranger: true });
  const theirs = await application({ key: stranger.key, project: stranger.id });
  await deployed(service, theirs);
  const unknown = await promote(target, 'app_01h455vb4pex5vsknk084sn02q');
  const foreign = await promote(target, theirs);
  expect([foreign.status, foreign.body.code, foreign.body.detail]).toEqual([
    422,
    'reference_not_found',
    unknown.body.detail,
  ]);
  for (const id of ['x', '', `${source}'`, 'prj_01h455vb4pex5vsknk084sn02q'])
    expect([422, 400]).toContain((await promote(target, id)).status);
});

test('a project key, or one that is restricted, does not reach into another project', async () => {
  const other = await service.newProject();
  const theirs = await application({ project: other.id });
  await deployed(service, theirs);
  expect((await promote(target, theirs)).status).toBe(201);
  for (const key of [
    await service.mintKey({ kind: 'project' }),
    await service.mintKey({ project_ids: [service.project] }),
  ]) {
    const refused = await promote(target, theirs, { key });
    expect([refused.status, refused.body.code]).toEqual([422, 'reference_not_found']);
  }
});

test('a viewer of the other project is told so', async () => {
  const other = await service.newProject();
  const theirs = await application({ project: other.id });
  await deployed(service, theirs);
  const key = await service.mintKey({ role: 'developer' });
  const { body: me } = await service.call('GET', '/v2/me', { key, project: null });
  expect((await promote(target, theirs, { key })).body.code).toBe('reference_not_found');
  const join = `insert into members select (jsonb_populate_record(m, jsonb_build_object('user_id', $2::text, 'role',
    'viewer', 'id', 'mem_' || right($2::text, 26)))).* from members m where project_id = $1 limit 1`;
  await service.sql(join, [other.id, me.user.id]);
  const refused = await promote(target, theirs, { key });
  expect([refused.status, refused.body.code]).toEqual([403, 'role_not_permitted']);
});

test('is refused without a version, from itself, and where a database is of another engine', async () => {
  const empty = await application();
  expect((await promote(target, empty)).body).toMatchObject({
    code: 'promotion_not_possible',
    detail: expect.stringContaining('no active deployment'),
  });
  expect((await promote(source, source)).body.errors).toMatchObject([{ field: 'source_application_id' }]);
  await deployed(service, empty);
  for (const [id, engine] of [
    [empty, 'postgresql'],
    [target, 'redis'],
  ]) {
    const { body } = await service.call('POST', '/v2/databases', { body: { name: `of-${engine}`, engine } });
    await service.sql(`update databases set status = 'available' where id = $1`, [body.id]);
    const attached = await service.call('POST', `/v2/databases/${body.id}/attachments`, {
      body: { application_id: id, env_prefix: 'STORE' },
    });
    expect(attached.status).toBe(201);
  }
  expect((await promote(target, empty)).body).toMatchObject({
    code: 'promotion_not_possible',
    detail: expect.stringMatching(/STORE_URL leads to postgresql in app-\d+, and to redis in/),
  });
});

test('two at once are two deployments, in both directions', async () => {
  await deployed(service, target);
  const answers = await Promise.all([
    ...[1, 2, 3].map(() => promote(target, source)),
    ...[1, 2, 3].map(() => promote(source, target)),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
});
