// Attachments that follow their database, and are removed (docs/contract/resources.md §9.5).
import { environment } from '../support/databases/database_children';
import {
  fresh,
  MISSING,
  newApplication,
  rowsOf,
  service,
  setUpAttachments,
} from '../support/databases/database_attachment_cases';

setUpAttachments();

describe('following', () => {
  it('a new password of the default user comes into the variables, and into no others', async () => {
    const { id, post } = await fresh();
    const [app, beside] = [await newApplication(), await newApplication()];
    await post('attachments', { application_id: app });
    const user = (await post('users', { username: 'other' })).body;
    await post('attachments', { application_id: beside, user_id: user.id });
    const before = await rowsOf(beside);
    const { password } = (await service.call('POST', `/v2/databases/${id}/credentials/rotate`)).body;
    expect(await environment(service, app)).toMatchObject({
      DATABASE_PASSWORD: password,
      DATABASE_URL: expect.stringContaining(`:${password}@`),
    });
    expect(await rowsOf(beside)).toEqual(before);
    const rotated = (await post(`users/${user.id}/rotate`)).body;
    expect((await environment(service, beside)).DATABASE_PASSWORD).toBe(rotated.password);
  });
});

describe('detaching', () => {
  it('takes its variables along, and nothing else', async () => {
    const { post, remove, get } = await fresh();
    const app = await newApplication();
    await service.call('PUT', `/v2/applications/${app}/env/DATABASE_POOL`, { body: { value: '5' } });
    const { id } = (await post('attachments', { application_id: app })).body;
    expect((await remove('attachments', id)).status).toBe(204);
    expect(await environment(service, app)).toEqual({ DATABASE_POOL: '5' });
    expect([(await get('attachments', id)).status, (await remove('attachments', id)).status]).toEqual([404, 404]);
    expect((await post('attachments', { application_id: app })).status).toBe(201);
  });

  it('a database can be deleted when nothing is attached any more', async () => {
    const { id, post, remove } = await fresh();
    const made = (await post('attachments', { application_id: await newApplication() })).body;
    expect(await service.call('DELETE', `/v2/databases/${id}`)).toMatchObject({
      status: 409,
      body: { code: 'resource_in_use', dependents: [{ type: 'database_attachment', id: made.id }] },
    });
    await remove('attachments', made.id);
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
  });

  it('an application takes its attachments along', async () => {
    const { id, post, get } = await fresh();
    const app = await newApplication();
    await post('attachments', { application_id: app });
    expect((await service.call('DELETE', `/v2/applications/${app}`)).status).toBe(204);
    expect([(await get('attachments')).body.data, await rowsOf(app)]).toEqual([[], []]);
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
  });

  it('an application that goes meanwhile gets nothing', async () => {
    const { id, post, get } = await fresh();
    for (let round = 0; round < 5; round += 1) {
      const app = await newApplication();
      const [attached, deleted] = await Promise.all([
        post('attachments', { application_id: app }),
        service.call('DELETE', `/v2/applications/${app}`),
      ]);
      expect([
        [201, 204],
        [422, 204],
      ]).toContainEqual([attached.status, deleted.status]);
      expect([await rowsOf(app), (await get('attachments')).body.data]).toEqual([[], []]);
    }
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
  });
});

describe('lists', () => {
  it('of a database and of an application have filters, sorts and pages', async () => {
    const [one, two] = [await fresh(), await fresh()];
    const [app, beside] = [await newApplication(), await newApplication()];
    await one.post('attachments', { application_id: app, env_prefix: 'BBB' });
    await two.post('attachments', { application_id: app, env_prefix: 'AAA' });
    await one.post('attachments', { application_id: beside, env_prefix: 'CCC' });
    const prefixes = async (place: string): Promise<string[]> => {
      const { status, body } = await service.call('GET', place);
      expect([status, body.code]).toEqual([200, undefined]);
      return body.data.map(({ env_prefix }: { env_prefix: string }) => env_prefix);
    };
    expect(await prefixes(`/v2/databases/${one.id}/attachments`)).toEqual(['CCC', 'BBB']);
    expect(await prefixes(`/v2/databases/${one.id}/attachments?application_id=${app}`)).toEqual(['BBB']);
    expect(await prefixes(`/v2/applications/${app}/attachments?sort=env_prefix`)).toEqual(['AAA', 'BBB']);
    expect(await prefixes(`/v2/applications/${app}/attachments?database_id=${two.id}`)).toEqual(['AAA']);
    const { next_cursor } = (await service.call('GET', `/v2/applications/${app}/attachments?limit=1`)).body;
    expect(await prefixes(`/v2/applications/${app}/attachments?limit=1&cursor=${next_cursor}`)).toEqual(['BBB']);
    expect((await service.call('GET', `/v2/applications/${MISSING}/attachments`)).status).toBe(404);
  });

  it('are relations on the other face', async () => {
    const { id, post } = await fresh();
    const app = await newApplication();
    await post('attachments', { application_id: app });
    const answer = await service.graphql(
      `query ($id: ID!) { getApplication(id: $id) { attachments {
        env_prefix variables database { id } application { id } } } }`,
      { id: app },
    );
    expect([answer.errors, answer.data.getApplication.attachments]).toEqual([
      undefined,
      [expect.objectContaining({ env_prefix: 'DATABASE', database: { id }, application: { id: app } })],
    ]);
  });
});

test('nothing of it is for other projects, other databases or keys that may only read', async () => {
  const { id, post, get } = await fresh();
  const made = (await post('attachments', { application_id: await newApplication() })).body;
  const other = await service.newProject();
  const beside = await fresh();
  const place = `/v2/databases/${id}/attachments/${made.id}`;
  for (const method of ['GET', 'DELETE']) {
    expect((await service.call(method, place, { key: other.key, project: other.id })).status).toBe(404);
    expect((await service.call(method, `/v2/databases/${beside.id}/attachments/${made.id}`)).status).toBe(404);
  }
  const reader = await service.mintKey({ scopes: ['read'] });
  expect((await service.call('GET', place, { key: reader })).status).toBe(200);
  expect(await service.call('DELETE', place, { key: reader })).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope' },
  });
  expect((await get('attachments')).body.data).toHaveLength(1);
});
