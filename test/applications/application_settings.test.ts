import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let path: string;
let serial = 0;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service?.close());

beforeEach(async () => {
  const { body } = await service.call('POST', '/v2/applications', { body: { name: `app-${(serial += 1)}` } });
  path = `/v2/applications/${body.id}/settings`;
});

const defaults = {
  build: {
    builder: 'buildpack',
    buildpack_builder: null,
    buildpacks: [],
    dockerfile_path: 'Dockerfile',
    dockerfile_target: null,
    image: null,
    root_directory: '.',
    output_directory: null,
    build_command: null,
  },
  run: { release_command: null, shutdown_grace_seconds: 30 },
  http: { port: null, force_https: true, request_timeout_seconds: 60, sticky_sessions: false },
  health_check: {
    type: null,
    path: null,
    interval_seconds: 10,
    timeout_seconds: 5,
    failure_threshold: 3,
    grace_period_seconds: 60,
  },
  previews: { auto_create: false, expire_after_days: 7, databases: [] },
  maintenance_mode: false,
  log_retention_days: 7,
};

function patch(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return service.call('PATCH', path, { body, headers });
}

async function get(): Promise<Answer['body']> {
  const { body } = await service.call('GET', path);
  const { application_id, ...settings } = body;
  expect(path).toContain(application_id);
  return settings;
}

/** Sends each body and expects exactly one mistake, at the field and with the code named. */
async function expectRefused(cases: [unknown, string, string][]): Promise<void> {
  for (const [body, field, code] of cases) {
    const answer = await patch(body);
    expect([
      body,
      answer.status,
      answer.body.errors?.map((error: { field: string; code: string }) => [error.field, error.code]),
    ]).toEqual([body, 422, [[field, code]]]);
  }
}

it('shows every default', async () => {
  expect(await get()).toEqual(defaults);
});

it('merges sections field by field, replaces lists, and keeps the rest', async () => {
  expect(
    (await patch({ build: { buildpacks: ['one', 'two'], build_command: 'make' }, http: { port: 3000 } })).status,
  ).toBe(200);
  const answer = await patch({
    build: { buildpacks: ['three'] },
    http: { sticky_sessions: true },
    previews: { expire_after_days: null },
    maintenance_mode: true,
  });
  const wanted = {
    ...defaults,
    build: { ...defaults.build, buildpacks: ['three'], build_command: 'make' },
    http: { ...defaults.http, port: 3000, sticky_sessions: true },
    previews: { auto_create: false, expire_after_days: null, databases: [] },
    maintenance_mode: true,
  };
  expect(answer.body).toMatchObject(wanted);
  expect(await get()).toEqual(wanted);
  await patch({ build: { build_command: null }, previews: { expire_after_days: 30 } });
  expect(await get()).toMatchObject({
    build: { build_command: null, buildpacks: ['three'] },
    previews: { expire_after_days: 30 },
  });
});

it('names a folder of a site only for sources that the platform builds', async () => {
  const { body } = await patch({ build: { output_directory: './docs/.vitepress/dist/' } });
  expect(body.build).toMatchObject({ builder: 'buildpack', output_directory: 'docs/.vitepress/dist' });
  const refused = await patch({ build: { builder: 'dockerfile' } });
  expect([refused.status, refused.body.errors[0].field]).toEqual([422, 'build.output_directory']);
  expect(refused.body.errors[0].detail).toContain('Set build.output_directory to null');
  const unset = await patch({ build: { builder: 'dockerfile', output_directory: null } });
  expect(unset.body.build).toMatchObject({ builder: 'dockerfile', output_directory: null });
  await patch({ build: { builder: 'buildpack' } });
});

it('takes every field and every bound', async () => {
  const least = {
    build: {
      builder: 'dockerfile',
      buildpack_builder: 'native',
      buildpacks: [],
      dockerfile_path: 'docker/Dockerfile.web',
      dockerfile_target: 'runtime',
      image: 'registry.example.com/acme/shop:1',
      root_directory: 'apps/web',
      build_command: 'x'.repeat(2000),
      output_directory: null,
    },
    run: { release_command: 'npm run migrate', shutdown_grace_seconds: 0 },
    http: { port: 1, force_https: false, request_timeout_seconds: 1, sticky_sessions: true },
    health_check: {
      type: 'http',
      path: '/healthz?deep=1',
      interval_seconds: 5,
      timeout_seconds: 1,
      failure_threshold: 1,
      grace_period_seconds: 0,
    },
    previews: { auto_create: true, expire_after_days: 1, databases: [] },
    maintenance_mode: true,
    log_retention_days: 1,
  };
  expect((await patch(least)).status).toBe(200);
  expect(await get()).toEqual(least);
  const most = {
    run: { shutdown_grace_seconds: 300 },
    http: { port: 65535, request_timeout_seconds: 900 },
    health_check: {
      path: `/${'p'.repeat(254)}`,
      interval_seconds: 300,
      timeout_seconds: 60,
      failure_threshold: 10,
      grace_period_seconds: 900,
    },
    previews: { expire_after_days: 30 },
    log_retention_days: 30,
  };
  expect((await patch(most)).status).toBe(200);
  expect(await get()).toMatchObject(most);
});

it('refuses what is out of bounds', async () => {
  await expectRefused([
    [{ run: { shutdown_grace_seconds: 301 } }, 'run.shutdown_grace_seconds', 'too_large'],
    [{ run: { shutdown_grace_seconds: -1 } }, 'run.shutdown_grace_seconds', 'too_small'],
    [{ http: { port: 0 } }, 'http.port', 'too_small'],
    [{ http: { port: 65536 } }, 'http.port', 'too_large'],
    [{ http: { port: 80.5 } }, 'http.port', 'invalid_type'],
    [{ http: { request_timeout_seconds: 901 } }, 'http.request_timeout_seconds', 'too_large'],
    [{ health_check: { interval_seconds: 4, timeout_seconds: 1 } }, 'health_check.interval_seconds', 'too_small'],
    [{ health_check: { failure_threshold: 11 } }, 'health_check.failure_threshold', 'too_large'],
    [{ health_check: { grace_period_seconds: 901 } }, 'health_check.grace_period_seconds', 'too_large'],
    [{ health_check: { path: 'healthz' } }, 'health_check.path', 'invalid_format'],
    [{ health_check: { path: `/${'p'.repeat(255)}` } }, 'health_check.path', 'too_long'],
    [{ previews: { expire_after_days: 31 } }, 'previews.expire_after_days', 'too_large'],
    [{ log_retention_days: 0 }, 'log_retention_days', 'too_small'],
    [{ build: { build_command: 'x'.repeat(2001) } }, 'build.build_command', 'too_long'],
    [
      { build: { buildpacks: Array.from({ length: 21 }, (_, index) => `pack-${index}`) } },
      'build.buildpacks',
      'too_many',
    ],
    [{ build: { buildpacks: ['a', 'a'] } }, 'build.buildpacks', 'duplicate'],
    [{ build: { root_directory: '../other' } }, 'build.root_directory', 'invalid_format'],
    [{ build: { output_directory: 'dist/../../x' } }, 'build.output_directory', 'invalid_format'],
    [{ build: { output_directory: '/srv' } }, 'build.output_directory', 'invalid_format'],
    [{ build: { output_directory: 'dist', builder: 'dockerfile' } }, 'build.output_directory', 'depends_on'],
    [{ build: { dockerfile_path: '/etc/Dockerfile' } }, 'build.dockerfile_path', 'invalid_format'],
    [{ build: { dockerfile_target: '--target' } }, 'build.dockerfile_target', 'invalid_format'],
    [{ build: { image: 'two words' } }, 'build.image', 'invalid_format'],
    [{ build: { builder: 'magic' } }, 'build.builder', 'not_in_enum'],
    [{ http: null }, 'http', 'required'],
    [{ http: [] }, 'http', 'invalid_type'],
    [{ http: { colour: 1 } }, 'http.colour', 'unknown_field'],
    [{ application_id: 'app_1' }, 'application_id', 'immutable'],
    [{ maintenance_mode: 'yes' }, 'maintenance_mode', 'invalid_type'],
    [{}, '', 'required'],
  ]);
  expect(await get()).toEqual(defaults);
});

it('holds the rules over several fields for the merged result', async () => {
  await expectRefused([
    [{ health_check: { type: 'http' } }, 'health_check.path', 'depends_on'],
    [{ health_check: { timeout_seconds: 10 } }, 'health_check.timeout_seconds', 'too_large'],
    [{ health_check: { interval_seconds: 5 } }, 'health_check.timeout_seconds', 'too_large'],
  ]);
  expect((await patch({ health_check: { type: 'http', path: '/up', interval_seconds: 20 } })).status).toBe(200);
  expect((await patch({ health_check: { timeout_seconds: 19 } })).status).toBe(200);
  await expectRefused([
    [{ health_check: { path: null } }, 'health_check.path', 'depends_on'],
    [{ health_check: { interval_seconds: 19 } }, 'health_check.timeout_seconds', 'too_large'],
  ]);
  expect((await patch({ health_check: { type: 'none', path: null } })).status).toBe(200);
});

it('refuses a builder that the catalog lacks', async () => {
  const answer = await patch({ build: { buildpack_builder: 'cobol' } });
  expect([answer.status, answer.body.code, answer.body.field]).toEqual([
    422,
    'reference_not_found',
    'build.buildpack_builder',
  ]);
});

it('carries the version of the application', async () => {
  const first = await service.call('GET', path);
  const etag = first.headers.get('etag') as string;
  expect((await service.call('GET', path.replace('/settings', ''))).headers.get('etag')).toBe(etag);
  expect((await service.call('GET', path, { headers: { 'If-None-Match': etag } })).status).toBe(304);
  const changed = await patch({ maintenance_mode: true }, { 'If-Match': etag });
  expect(changed.status).toBe(200);
  expect(changed.headers.get('etag')).not.toBe(etag);
  expect(changed.headers.get('etag')).toBe((await service.call('GET', path)).headers.get('etag'));
  expect((await patch({ maintenance_mode: false }, { 'If-Match': etag })).status).toBe(412);
  expect((await get()).maintenance_mode).toBe(true);
});

it('loses none of many changes at once', async () => {
  const changes = [
    { http: { port: 4000 } },
    { http: { force_https: false } },
    { run: { shutdown_grace_seconds: 9 } },
    { log_retention_days: 3 },
    { build: { build_command: 'make' } },
  ];
  const answers = await Promise.all(changes.map((change) => patch(change)));
  expect(answers.map(({ status }) => status)).toEqual(changes.map(() => 200));
  expect(await get()).toMatchObject({
    http: { port: 4000, force_https: false },
    run: { shutdown_grace_seconds: 9 },
    log_retention_days: 3,
    build: { build_command: 'make' },
  });
});

it('names the changed settings in the activity, without values', async () => {
  await patch({ build: { build_command: 'echo hidden-word' }, maintenance_mode: true });
  const rows = await service.sql(
    `select action, changed_fields from activity where action = 'application_settings.updated'
      order by id desc limit 1`,
  );
  expect(rows).toEqual([
    { action: 'application_settings.updated', changed_fields: ['build.build_command', 'maintenance_mode'] },
  ]);
});

it('is the same on GraphQL', async () => {
  const id = path.split('/')[3];
  const fields = `application_id
      build {
        builder buildpack_builder buildpacks dockerfile_path dockerfile_target image root_directory build_command
        output_directory
      }
      run { release_command shutdown_grace_seconds }
    http { port force_https request_timeout_seconds sticky_sessions }
      health_check { type path interval_seconds timeout_seconds failure_threshold grace_period_seconds }
    previews { auto_create expire_after_days databases { database_id mode } } maintenance_mode log_retention_days`;
  const changed = await service.graphql(
    `mutation ($id: ID!) { updateApplicationSettings(id: $id,
      input: { previews: { expire_after_days: null }, http: { port: 5000 } }) { ${fields} } }`,
    { id },
  );
  const read = await service.graphql(`query ($id: ID!) { getApplicationSettings(id: $id) { ${fields} } }`, { id });
  expect(changed.data.updateApplicationSettings).toEqual(read.data.getApplicationSettings);
  expect(read.data.getApplicationSettings).toEqual((await service.call('GET', path)).body);
  const refused = await service.graphql(
    `mutation ($id: ID!) { updateApplicationSettings(id: $id, input: { health_check: { type: http } }) {
      application_id } }`,
    { id },
  );
  expect(refused.errors?.[0].extensions).toMatchObject({
    code: 'validation_failed',
    errors: [{ field: 'health_check.path', code: 'depends_on' }],
  });
});
