// Lists of applications, the GraphQL face, and what crosses from one project to another.
import { startService, type TestService } from '../support/service';

/* oxlint-disable typescript/no-explicit-any -- rows as the service answers them */
let service: TestService;
let project: string;
let rows: any[];

beforeAll(async () => {
  service = await startService();
  project = (await service.newProject()).id;
  for (const name of ['delta', 'alpha', 'echo', 'bravo', 'charlie']) {
    const { body } = await service.call('POST', '/v2/applications', {
      project,
      body: { name, application_type: name === 'echo' ? 'm-1gb' : 's-512mb' },
    });
    rows = [...(rows ?? []), body];
  }
  await service.sql(`update applications set status = 'running' where name in ('alpha', 'bravo') and project_id = $1`, [
    project,
  ]);
  const touched = await service.call('PATCH', `/v2/applications/${rows[1].id}`, {
    project,
    body: { description: 'Touched last' },
  });
  expect(touched.status).toBe(200);
});

afterAll(() => service?.close());

async function walk(query: string, limit: number): Promise<string[]> {
  const names: string[] = [];
  let cursor: string | null = null;
  do {
    const { body, status }: any = await service.call(
      'GET',
      `/v2/applications?limit=${limit}&${query}${cursor ? `&cursor=${cursor}` : ''}`,
      { project },
    );
    expect(status).toBe(200);
    expect(body.data.length).toBeLessThanOrEqual(limit);
    names.push(...body.data.map((row: any) => row.name));
    cursor = body.next_cursor;
  } while (cursor);
  return names;
}

describe('list', () => {
  it('walks pages in every order', async () => {
    for (const limit of [1, 2, 5]) {
      expect(await walk('', limit)).toEqual(['charlie', 'bravo', 'echo', 'alpha', 'delta']);
      expect(await walk('sort=created_at', limit)).toEqual(['delta', 'alpha', 'echo', 'bravo', 'charlie']);
      expect(await walk('sort=name', limit)).toEqual(['alpha', 'bravo', 'charlie', 'delta', 'echo']);
      expect(await walk('sort=-name', limit)).toEqual(['echo', 'delta', 'charlie', 'bravo', 'alpha']);
      expect((await walk('sort=-updated_at', limit))[0]).toBe('alpha');
      expect((await walk('sort=updated_at', limit)).slice(-1)).toEqual(['alpha']);
    }
  });

  it('filters, each filter alone and all together', async () => {
    expect(await walk('name=echo', 2)).toEqual(['echo']);
    expect(await walk('status=running&sort=name', 1)).toEqual(['alpha', 'bravo']);
    expect(await walk('application_type=m-1gb', 1)).toEqual(['echo']);
    expect(await walk('region=local', 2)).toHaveLength(5);
    expect(await walk('region=elsewhere', 2)).toEqual([]);
    expect(await walk('status=new&application_type=s-512mb&name=delta&region=local', 2)).toEqual(['delta']);
  });

  it('refuses what no list knows', async () => {
    const refused: [string, string][] = [
      ['status=sleeping', 'status'],
      ['sort=region', 'sort'],
      ['limit=0', 'limit'],
      ['limit=abc', 'limit'],
    ];
    for (const [query, parameter] of refused) {
      const { status, body } = await service.call('GET', `/v2/applications?${query}`, { project });
      expect([status, body.code, body.parameter]).toEqual([400, 'invalid_query_parameter', parameter]);
    }
    const first = await service.call('GET', '/v2/applications?limit=1&sort=name', { project });
    const other = await service.call('GET', `/v2/applications?limit=1&sort=-name&cursor=${first.body.next_cursor}`, {
      project,
    });
    expect([other.status, other.body.code]).toEqual([400, 'invalid_cursor']);
    const elsewhere = await service.call('GET', `/v2/volumes?limit=1&sort=name&cursor=${first.body.next_cursor}`, {
      project,
    });
    expect([elsewhere.status, elsewhere.body.code]).toEqual([400, 'invalid_cursor']);
  });

  it('answers the twin below the project alike', async () => {
    const short = await service.call('GET', '/v2/applications?sort=name', { project });
    const long = await service.call('GET', `/v2/projects/${project}/applications?sort=name`, { project: null });
    expect(long.body).toEqual(short.body);
  });
});

describe('tenancy', () => {
  it('shows nothing of one project in another', async () => {
    const stranger = await service.newProject({ stranger: true });
    const { id } = rows[0];
    for (const options of [{ project: service.project }, { project: stranger.id, key: stranger.key }]) {
      expect((await service.call('GET', `/v2/applications/${id}`, options)).status).toBe(404);
      expect(
        (await service.call('PATCH', `/v2/applications/${id}`, { ...options, body: { name: 'stolen' } })).status,
      ).toBe(404);
      expect((await service.call('DELETE', `/v2/applications/${id}`, options)).status).toBe(404);
      expect((await service.call('GET', `/v2/applications/${id}/settings`, options)).status).toBe(404);
      expect((await service.call('GET', '/v2/applications?name=delta', options)).body.data).toEqual([]);
    }
    expect((await service.call('GET', '/v2/applications/vol_01h455vb4pex5vsknk084sn02q', { project })).status).toBe(
      404,
    );
  });

  it('lets viewers read and not write', async () => {
    const key = await service.mintKey({ role: 'viewer' });
    expect((await service.call('GET', '/v2/applications', { key })).status).toBe(200);
    expect((await service.call('POST', '/v2/applications', { key, body: { name: 'viewed' } })).body).toMatchObject({
      status: 403,
      code: 'role_not_permitted',
    });
  });
});

const FIELDS =
  'id project_id name description region application_type preset default_hostname status status_reason ' +
  'current_deployment_id deletion_protection auto_deploy_enabled created_at updated_at';
const SOURCE =
  'source { type git_integration_id repository_id shared_repository_id repository_url branch image registry_id ' +
  'preset template }';

describe('GraphQL', () => {
  it('says the same as REST', async () => {
    const made = await service.graphql(
      `mutation ($input: CreateApplicationInput!) { createApplication(input: $input) { ${FIELDS} ${SOURCE} } }`,
      { input: { name: 'spoken', source: { type: 'image', image: 'registry.example.com/shop:1' } } },
    );
    const { id } = made.data.createApplication;
    expect(made.data.createApplication).toEqual((await service.call('GET', `/v2/applications/${id}`)).body);
    const list = await service.graphql(
      `query ($project: ID) { listApplications(project_id: $project, sort: "name", limit: 2) {
        data { ${FIELDS} ${SOURCE} } next_cursor } }`,
      { project },
    );
    expect(list.data.listApplications).toEqual(
      (await service.call('GET', '/v2/applications?sort=name&limit=2', { project })).body,
    );
    const wrong = await service.graphql(
      'mutation { updateApplication(id: "app_1", input: { name: "A", source: { branch: "a b" } }) { id } }',
    );
    expect(wrong.errors?.[0].extensions).toMatchObject({
      code: 'validation_failed',
      errors: [{ field: 'name' }, { field: 'source.branch', code: 'invalid_format' }],
    });
    const gone = await service.graphql('mutation ($id: ID!) { deleteApplication(id: $id) }', { id });
    expect(gone.data).toEqual({ deleteApplication: true });
    expect(
      (await service.graphql('query ($id: ID!) { getApplication(id: $id) { id } }', { id })).errors?.[0].extensions
        .code,
    ).toBe('not_found');
  });

  it('loads relations with one query for all applications, and each finds its own', async () => {
    for (const { id, name } of rows) {
      for (const part of ['a', 'b']) {
        await service.call('POST', '/v2/volumes', {
          project,
          body: { name: `${name}-${part}`, size_gb: 1, application_id: id, mount_path: `/${part}` },
        });
      }
      await service.call('PUT', `/v2/applications/${id}/env/NAME`, { project, body: { value: name } });
      await service.call('POST', `/v2/applications/${id}/domains`, {
        project,
        body: { hostname: `${name}.example.com` },
      });
    }
    const query = (
      limit: number,
    ): string => `query { listApplications(project_id: "${project}", sort: "name", limit: ${limit}) { data { name
      volumes(limit: 50) { name application { name } } environment_variables(limit: 1) { value }
        domains(limit: 9) { hostname } } } }`;
    // Now and then the caller is looked up anew, or loops are called for what was written before.
    const fewest = async (limit: number) => {
      const runs = [
        await counted(() => service.graphql(query(limit))),
        await counted(() => service.graphql(query(limit))),
        await counted(() => service.graphql(query(limit))),
      ];
      return runs.reduce((a, b) => (b.queries < a.queries ? b : a));
    };
    const [one, five] = [await fewest(1), await fewest(5)];
    expect(five.answer.errors).toBeUndefined();
    expect(five.answer.data.listApplications.data).toEqual(
      ['alpha', 'bravo', 'charlie', 'delta', 'echo'].map((name) => ({
        name,
        volumes: [
          { name: `${name}-a`, application: { name } },
          { name: `${name}-b`, application: { name } },
        ],
        environment_variables: [{ value: name }],
        domains: [{ hostname: `${name}.example.com` }],
      })),
    );
    expect(one.queries).toBeGreaterThanOrEqual(5);
    expect(five.queries).toBe(one.queries);
  });

  it('bounds a relation and guards it with its scope', async () => {
    const query = (limit: number): string =>
      `query { getApplication(id: "${rows[0].id}") { volumes(limit: ${limit}) { name } } }`;
    expect((await service.graphql(query(1), {}, { project })).data.getApplication.volumes).toEqual([
      { name: 'delta-a' },
    ]);
    expect((await service.graphql(query(-5), {}, { project })).data.getApplication.volumes).toHaveLength(1);
    const key = await service.mintKey({ scopes: ['read'] });
    const secret = await service.graphql(
      `query { getApplication(id: "${rows[0].id}") { name environment_variables(limit: 5) { key } } }`,
      {},
      { key, project },
    );
    expect(secret.errors?.[0].extensions).toMatchObject({ code: 'insufficient_scope', required_scope: 'env:read' });
    expect(secret.text).not.toContain('NAME');
  });
});

/** Statements that the service sends while something runs. */
async function counted<T>(run: () => Promise<T>): Promise<{ answer: T; queries: number }> {
  const { database } = service.platform;
  const { query } = database;
  let queries = 0;
  database.query = ((statement: never, values: never) => {
    queries += 1;
    return query.call(database, statement, values);
  }) as typeof query;
  try {
    return { answer: await run(), queries };
  } finally {
    database.query = query;
  }
}
