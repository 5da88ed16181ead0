// The GraphQL face beside REST: the same keys, rules, headers and codes, and nothing of the inside.
import { mintRequestId } from '../../core/ids';
import { rawRequest } from '../support/ingress/raw_http';
import { type CallOptions } from '../support/service';
import { LIST, post, service, setUpGraphql } from '../support/contract/graphql_cases';

setUpGraphql();

const CREATE = `mutation ($input: CreateVolumeInput!, $project: ID) {
  createVolume(project_id: $project, input: $input) { id project_id name size_gb mount_path } }`;

describe('the same rules', () => {
  it('keeps the connection of a refused caller, unless much of the body is left', async () => {
    const stranger = { Authorization: 'Bearer svc_nobody' };
    const small = await post(JSON.stringify({ query: LIST }), stranger);
    const large = await post(JSON.stringify({ query: LIST, variables: { filler: 'x'.repeat(32 << 10) } }), stranger);
    expect([small.status, small.headers.get('connection')]).toEqual([401, 'keep-alive']);
    expect([large.status, large.headers.get('connection')]).toEqual([401, 'close']);
  });

  it('refuses as REST refuses', async () => {
    const other = await service.newProject();
    const stranger = await service.newProject({ stranger: true });
    const cases: [string, CallOptions][] = [
      ['no key', { key: null }],
      ['no token at all', { key: '' }],
      ['an unknown key', { key: 'svc_nobody' }],
      ['an expired key', { key: await service.mintKey({ expires_at: '2020-01-01T00:00:00.000Z' }) }],
      ['no scope', { key: await service.mintKey({ scopes: ['write'] }) }],
      ['no project', { project: null }],
      ['a project that is not there', { project: 'prj_01h455vb4pex5vsknk084sn02q' }],
      ['a project of others', { project: stranger.id }],
      ['a restricted key', { key: await service.mintKey({ project_ids: [other.id] }) }],
      ['a project key elsewhere', { key: await service.mintKey({ kind: 'project' }), project: other.id }],
    ];
    for (const [name, options] of cases) {
      const rest = await service.call('GET', '/v2/volumes', options);
      const { errors, data, headers, status } = await service.graphql(LIST, {}, options);
      const extensions = errors?.[0].extensions;
      expect([name, data ?? null, extensions.code, extensions.status, errors?.[0].message]).toEqual([
        name,
        null,
        rest.body.code,
        rest.status,
        rest.body.detail,
      ]);
      expect([name, extensions.title, extensions.retryable, extensions.request_id]).toEqual([
        name,
        rest.body.title,
        rest.body.retryable,
        headers.get('x-request-id'),
      ]);
      expect([name, status]).toEqual([name, rest.status === 401 ? 401 : 200]);
      expect([name, headers.get('www-authenticate')?.slice(0, 6)]).toEqual([
        name,
        rest.headers.get('www-authenticate')?.slice(0, 6),
      ]);
      expect([name, headers.get('ratelimit-limit')]).toEqual([name, rest.headers.get('ratelimit-limit')]);
    }
  });

  it('lets nobody past in another spelling of the path', async () => {
    const body = JSON.stringify({ query: LIST });
    const spellings = [
      '/graphql/',
      '/GraphQL',
      '/graphql?x=1',
      '/graphql/?x',
      '//graphql',
      '/graphql//',
      '/graphql/.',
      '/x/../graphql',
      '/graph%71l',
      '/graphql%2f',
      '/graphql;x',
    ];
    for (const path of spellings) {
      const answer = await rawRequest(service.url, path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: 'Bearer svc_nobody' },
        body,
      });
      expect([path, answer.status]).toEqual([path, /^\/graphql\/?(?:\?|$)/i.test(path) ? 401 : 404]);
    }
  });

  it('carries the members of a problem', async () => {
    const fields = await service.graphql(CREATE, { input: { name: 'U', size_gb: 10 } });
    expect(fields.errors?.[0]).toMatchObject({
      path: ['createVolume'],
      extensions: {
        code: 'validation_failed',
        status: 422,
        errors: [{ field: 'name', code: expect.any(String), detail: expect.any(String) }],
      },
    });
    const scope = await service.graphql(
      CREATE,
      { input: { name: 'data', size_gb: 1 } },
      { key: await service.mintKey({ scopes: ['read'] }) },
    );
    expect(scope.errors?.[0].extensions).toMatchObject({
      code: 'insufficient_scope',
      required_scope: 'write',
      token_scopes: ['read'],
    });
  });

  it('sends the same headers, and an id of its own for each request', async () => {
    const sent = mintRequestId();
    const rest = await service.call('GET', '/v2/volumes');
    const { headers } = await service.graphql(LIST, {}, { headers: { 'X-Request-Id': sent } });
    for (const name of ['ratelimit-limit', 'ratelimit-policy']) expect(headers.get(name)).toBe(rest.headers.get(name));
    expect(Number(headers.get('ratelimit-remaining'))).toBeGreaterThan(0);
    expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThan(0);
    expect(headers.get('x-request-id')).toMatch(/^req_/);
    expect(headers.get('x-request-id')).not.toBe(sent);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    const write = await service.graphql(CREATE, { input: { name: 'headers', size_gb: 1 } });
    expect(write.headers.get('ratelimit-policy')).toMatch(/^"write"/);
  });

  it('lets the argument project_id win over the header', async () => {
    const other = await service.newProject();
    const made = await service.graphql(CREATE, { input: { name: 'elsewhere', size_gb: 1 }, project: other.id });
    expect(made.data.createVolume.project_id).toBe(other.id);
    const both = await service.graphql(
      `query ($id: ID) { here: listVolumes(name: "elsewhere") { data { id } } there:
        listVolumes(project_id: $id, name: "elsewhere") { data { id } } }`,
      { id: other.id },
    );
    expect([both.data.here.data, both.data.there.data]).toEqual([[], [{ id: made.data.createVolume.id }]]);
  });

  it('takes no project that has not the form of an id', async () => {
    for (const id of ['\u0000', 'x'.repeat(10_000), '\ud800', '']) {
      const { errors } = await service.graphql('query ($id: ID) { listVolumes(project_id: $id) { data { id } } }', {
        id,
      });
      expect([id.slice(0, 5), errors?.[0].extensions.code]).toEqual([id.slice(0, 5), 'project_not_found']);
    }
  });

  it('tells null from absent', async () => {
    const [app] = (await service.graphql('mutation { createApplication(input: {name: "shop"}) { id } }')).data
      ? [(await service.call('GET', '/v2/applications?name=shop')).body.data[0].id]
      : [];
    const made = await service.graphql(CREATE, {
      input: { name: 'pair', size_gb: 1, application_id: app, mount_path: '/data' },
    });
    const { id } = made.data.createVolume;
    await service.sql(`update volumes set status = 'in_use' where id = $1`, [id]);
    const change = `mutation ($id: ID!, $input: UpdateVolumeInput!) {
      updateVolume(id: $id, input: $input) { name application_id mount_path } }`;
    const renamed = await service.graphql(change, { id, input: { name: 'couple' } });
    expect(renamed.data.updateVolume).toEqual({ name: 'couple', application_id: app, mount_path: '/data' });
    const detached = await service.graphql(change, { id, input: { application_id: null } });
    expect(detached.data.updateVolume).toEqual({ name: 'couple', application_id: null, mount_path: null });
    // A variable that is not sent leaves its field out.
    const kept = await service.graphql(
      'mutation ($id: ID!, $path: String) { updateVolume(id: $id, input: {name: "trio", mount_path: $path}) { name } }',
      { id },
    );
    expect(kept.data.updateVolume).toEqual({ name: 'trio' });
    const refused = await service.graphql(change, { id, input: { name: null } });
    expect(refused.errors?.[0].extensions).toMatchObject({ code: 'validation_failed', errors: [{ field: 'name' }] });
  });

  it('sees in a later mutation what an earlier one of the same request changed', async () => {
    const app = (await service.call('POST', '/v2/applications', { body: { name: 'before' } })).body.id;
    const volume = (
      await service.call('POST', '/v2/volumes', {
        body: { name: 'late', size_gb: 1, application_id: app, mount_path: '/data' },
      })
    ).body.id;
    await service.sql(`update volumes set status = 'in_use' where id = $1`, [volume]);
    const { data } = await service.graphql(
      `mutation ($app: ID!, $volume: ID!) {
      one: updateVolume(id: $volume, input: {name: "later"}) { application { name } }
      updateApplication(id: $app, input: {name: "after"}) { name }
      two: updateVolume(id: $volume, input: {name: "latest"}) { application { name } }
    }`,
      { app, volume },
    );
    expect(data).toEqual({
      one: { application: { name: 'before' } },
      updateApplication: { name: 'after' },
      two: { application: { name: 'after' } },
    });
  });
});

test('its requests are counted like those of REST', async () => {
  await service.graphql(LIST);
  await service.graphql('{ nothing }');
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
  for (const status of [200, 400])
    expect(metrics).toMatch(new RegExp(`platform_requests_total\\{operation="graphql",status="${status}"\\} \\d+`));
});
