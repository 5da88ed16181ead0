// Process types (docs/contract/resources.md §7). Their scaling: process_scale.test.ts.
import { deployed, instanceOf } from './support/deployed';
import { startService, type Answer, type TestService } from './support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"applications": 1000}' } });
});

afterAll(() => service.close());

let serial = 0;

async function newApplication(body: Record<string, unknown> = {}): Promise<string> {
  return (await service.call('POST', '/v2/applications', { body: { name: `shop-${(serial += 1)}`, ...body } })).body.id;
}

const place = (application: string, id = ''): string => `/v2/applications/${application}/processes${id && `/${id}`}`;
const post = (application: string, body: unknown): Promise<Answer> =>
  service.call('POST', place(application), { body });
const patch = (application: string, id: string, body: unknown): Promise<Answer> =>
  service.call('PATCH', place(application, id), { body });
const scale = (application: string, id: string, body: unknown): Promise<Answer> =>
  service.call('POST', `${place(application, id)}/scale`, { body });
const web = async (application: string): Promise<string> =>
  (await service.call('GET', `${place(application)}?type=web`)).body.data[0].id;
const dueOf = async (application: string): Promise<number> =>
  (await service.sql<{ generation: number }>('select generation from applications where id = $1', [application]))[0]
    ?.generation as number;

async function created(application: string, body: Record<string, unknown> = {}): Promise<Answer['body']> {
  const answer = await post(application, { type: `worker-${(serial += 1)}`, ...body });
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}

function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

const BOUNDS = { min_instances: 2, max_instances: 4, metric: 'cpu', target: 70 };

describe('creation', () => {
  it('answers everything that is promised', async () => {
    const application = await newApplication();
    const made = await post(application, {
      type: 'worker',
      command: 'npm run worker',
      application_type: 'm-1gb',
      instances: 2,
    });
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      `${service.url}${place(application, made.body.id)}`,
    ]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^prc_[0-9a-hjkmnp-tv-z]{26}$/),
      project_id: service.project,
      application_id: application,
      type: 'worker',
      command: 'npm run worker',
      application_type: 'm-1gb',
      instances: 2,
      autoscaling: null,
      running_instances: 0,
      status: 'idle',
      created_at: expect.any(String),
      updated_at: made.body.created_at,
    });
    expect((await service.call('GET', place(application, made.body.id))).body).toEqual(made.body);
  });

  it('wants no instance unless told so, and as many as the bounds of autoscaling ask for', async () => {
    const application = await newApplication();
    expect(await created(application)).toMatchObject({ instances: 0, command: null, application_type: null });
    expect(await created(application, { autoscaling: BOUNDS })).toMatchObject({ instances: 2, autoscaling: BOUNDS });
    expect(await created(application, { instances: 9, autoscaling: BOUNDS })).toMatchObject({ instances: 4 });
  });

  const mistakes: [Record<string, unknown>, [string, string][]][] = [
    [{ type: undefined }, [['type', 'required']]],
    [{ type: 'Worker' }, [['type', 'invalid_format']]],
    [{ type: '1st' }, [['type', 'invalid_format']]],
    [{ type: 'x'.repeat(31) }, [['type', 'invalid_format']]],
    [{ command: '' }, [['command', 'too_short']]],
    [{ command: 'x'.repeat(2001) }, [['command', 'too_long']]],
    [{ instances: -1 }, [['instances', 'too_small']]],
    [{ instances: null }, [['instances', 'required']]],
    [{ instances: 1.5 }, [['instances', 'invalid_type']]],
    [{ running_instances: 1 }, [['running_instances', 'immutable']]],
    [
      { autoscaling: {} },
      [
        ['autoscaling.min_instances', 'required'],
        ['autoscaling.max_instances', 'required'],
        ['autoscaling.metric', 'required'],
        ['autoscaling.target', 'required'],
      ],
    ],
    [{ autoscaling: { ...BOUNDS, min_instances: 0 } }, [['autoscaling.min_instances', 'too_small']]],
    [{ autoscaling: { ...BOUNDS, max_instances: 1 } }, [['autoscaling.max_instances', 'too_small']]],
    [{ autoscaling: { ...BOUNDS, metric: 'luck' } }, [['autoscaling.metric', 'not_in_enum']]],
    [{ autoscaling: { ...BOUNDS, target: 0 } }, [['autoscaling.target', 'too_small']]],
    [{ autoscaling: { ...BOUNDS, target: 101 } }, [['autoscaling.target', 'too_large']]],
    [{ autoscaling: { ...BOUNDS, metric: 'memory', target: 101 } }, [['autoscaling.target', 'too_large']]],
  ];

  it.each(mistakes)('refuses %j', async (body, wanted) => {
    expect(errorsOf(await post(await newApplication(), { type: 'worker', ...body }))).toEqual(wanted);
  });

  it('takes any number of requests a second as a target', async () => {
    expect(
      await created(await newApplication(), {
        autoscaling: { ...BOUNDS, metric: 'requests_per_second', target: 250.5 },
      }),
    ).toMatchObject({ autoscaling: { target: 250.5 } });
  });

  it('knows its sizes and how many instances they allow', async () => {
    const application = await newApplication({ application_type: 'xs-256mb' });
    const unknown = await post(application, { type: 'worker', application_type: 'huge' });
    expect([unknown.status, unknown.body.code, unknown.body.field]).toEqual([
      422,
      'reference_not_found',
      'application_type',
    ]);
    const many = await post(application, { type: 'worker', instances: 6 });
    expect([many.status, many.body.code, many.body.max_instances]).toEqual([422, 'scale_out_of_range', 5]);
    const bounds = await post(application, { type: 'worker', autoscaling: { ...BOUNDS, max_instances: 6 } });
    expect([bounds.status, bounds.body.code, bounds.body.max_instances]).toEqual([422, 'scale_out_of_range', 5]);
    expect((await post(application, { type: 'worker', application_type: 's-512mb', instances: 6 })).status).toBe(201);
  });

  it('has each type once, however many ask for it at a time', async () => {
    const application = await newApplication();
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(application, { type: 'worker' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.body.code).toBe('already_exists');
    expect((await post(application, { type: 'web' })).body.code).toBe('already_exists');
    expect((await post(await newApplication(), { type: 'worker' })).status).toBe(201);
  });

  it('has a limit', async () => {
    const application = await newApplication();
    await service.sql(
      `insert into processes (id, project_id, application_id, type, created_at, updated_at)
      select 'prc_' || lpad(n::text, 26, '0'), project_id, id, 'type-' || n, now(), now()
        from applications, generate_series(1, 48) n where id = $1`,
      [application],
    );
    const answers = await Promise.all([post(application, { type: 'one' }), post(application, { type: 'two' })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 403]);
    expect(answers.find(({ status }) => status === 403)?.body).toMatchObject({
      code: 'quota_exceeded',
      resource: 'processes',
      used: 50,
      limit: 50,
    });
  });

  it('answers a repeated key from what it has done', async () => {
    const application = await newApplication();
    const options = { body: { type: 'worker' }, headers: { 'Idempotency-Key': `process-${application}` } };
    const first = await service.call('POST', place(application), options);
    const again = await service.call('POST', place(application), options);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect((await service.call('GET', place(application))).body.data).toHaveLength(2);
  });
});

describe('reading', () => {
  it('filters and sorts', async () => {
    const application = await newApplication();
    for (const type of ['beta', 'alpha', 'gamma']) await created(application, { type });
    const types = async (query: string): Promise<string[]> =>
      (await service.call('GET', `${place(application)}?${query}`)).body.data.map(({ type }: { type: string }) => type);
    expect(await types('')).toEqual(['gamma', 'alpha', 'beta', 'web']);
    expect(await types('sort=type')).toEqual(['alpha', 'beta', 'gamma', 'web']);
    expect(await types('sort=-type&limit=2')).toEqual(['web', 'gamma']);
    expect(await types('type=alpha')).toEqual(['alpha']);
    expect(await types('status=running')).toEqual([]);
    expect(await types('status=idle&sort=created_at')).toEqual(['web', 'beta', 'alpha', 'gamma']);
  });

  it('belongs to its application and its project', async () => {
    const [application, other] = [await newApplication(), await newApplication()];
    const { id } = await created(application);
    expect((await service.call('GET', place(other, id))).status).toBe(404);
    const stranger = await service.newProject({ stranger: true });
    expect((await service.call('GET', place(application), { key: stranger.key, project: stranger.id })).status).toBe(
      404,
    );
    expect(
      (await service.call('GET', place(application, id), { key: stranger.key, project: stranger.id })).status,
    ).toBe(404);
    for (const [method, path] of [
      ['PATCH', place(other, id)],
      ['DELETE', place(other, id)],
      ['POST', `${place(other, id)}/scale`],
    ] as const) {
      const body = method === 'PATCH' ? { command: 'x' } : method === 'POST' ? { instances: 1 } : undefined;
      expect([method, (await service.call(method, path, { body })).status]).toEqual([method, 404]);
    }
  });

  it('needs the scopes of reading and writing', async () => {
    const application = await newApplication();
    const id = await web(application);
    const reader = await service.mintKey({ scopes: ['read'] });
    expect((await service.call('GET', place(application, id), { key: reader })).status).toBe(200);
    expect(
      (await service.call('POST', `${place(application, id)}/scale`, { key: reader, body: { instances: 1 } })).body,
    ).toMatchObject({ code: 'insufficient_scope', required_scope: 'write' });
  });

  it('is a relation of its application', async () => {
    const application = await newApplication();
    await created(application, { type: 'worker' });
    const { data, errors } = await service.graphql(
      `{ getApplication(id: "${application}") { processes(limit: 10) { type application { id } } } }`,
    );
    expect([errors, data.getApplication.processes]).toEqual([
      undefined,
      [
        { type: 'web', application: { id: application } },
        { type: 'worker', application: { id: application } },
      ],
    ]);
  });
});

describe('change', () => {
  it('sets and clears command and size, and touches nothing that runs', async () => {
    const application = await deployed(service, await newApplication());
    const id = application.processes.web as string;
    const due = await dueOf(application.id);
    expect(
      (await patch(application.id, id, { command: 'node server.js', application_type: 'm-1gb' })).body,
    ).toMatchObject({ command: 'node server.js', application_type: 'm-1gb', status: 'running' });
    expect((await patch(application.id, id, { command: null, application_type: null })).body).toMatchObject({
      command: null,
      application_type: null,
    });
    expect(await dueOf(application.id)).toBe(due);
  });

  it('keeps to the rules', async () => {
    const application = await newApplication();
    const id = await web(application);
    expect(errorsOf(await patch(application, id, { type: 'other' }))).toEqual([['type', 'immutable']]);
    expect(errorsOf(await patch(application, id, { instances: 2 }))).toEqual([['instances', 'immutable']]);
    expect((await patch(application, id, {})).status).toBe(422);
    expect((await patch(application, id, { application_type: 'huge' })).body).toMatchObject({
      code: 'reference_not_found',
      field: 'application_type',
    });
  });

  it('refuses a size that does not allow what is wanted', async () => {
    const application = await newApplication();
    const id = await web(application);
    await scale(application, id, { instances: 10 });
    expect((await patch(application, id, { application_type: 'xs-256mb' })).body).toMatchObject({
      code: 'scale_out_of_range',
      max_instances: 5,
    });
    await scale(application, id, { autoscaling: { ...BOUNDS, max_instances: 9 } });
    await scale(application, id, { instances: 5 });
    expect((await patch(application, id, { application_type: 'xs-256mb' })).status).toBe(200);
  });

  it('checks If-Match against the process type', async () => {
    const application = await newApplication();
    const id = await web(application);
    const { headers } = await service.call('GET', place(application, id));
    const stale = headers.get('etag') as string;
    expect(
      (await service.call('PATCH', place(application, id), { body: { command: 'a' }, headers: { 'If-Match': stale } }))
        .status,
    ).toBe(200);
    expect(
      (await service.call('PATCH', place(application, id), { body: { command: 'b' }, headers: { 'If-Match': stale } }))
        .body.code,
    ).toBe('precondition_failed');
    expect((await service.call('DELETE', place(application, id), { headers: { 'If-Match': stale } })).body.code).toBe(
      'precondition_failed',
    );
  });
});

describe('deletion', () => {
  it('protects web', async () => {
    const application = await newApplication();
    expect((await service.call('DELETE', place(application, await web(application)))).body).toMatchObject({
      status: 409,
      code: 'resource_protected',
    });
  });

  it('stops its instances, those of previews too, and no others', async () => {
    const plain = await newApplication();
    const worker = await created(plain, { type: 'worker', instances: 1 });
    const application = await deployed(service, plain);
    const gone = [
      await instanceOf(service, application, 'worker'),
      await instanceOf(service, application, 'worker', { status: 'crashed' }),
    ];
    const stays = await instanceOf(service, application, 'web');
    const due = await dueOf(plain);
    const answer = await service.call('DELETE', place(plain, worker.id));
    expect([answer.status, answer.text]).toEqual([204, '']);
    const rows = await service.sql<{ id: string; status: string; due: boolean }>(
      'select id, status, next_at <= now() as due from instances where application_id = $1 order by id',
      [plain],
    );
    expect(rows).toEqual([
      ...gone.map((id) => ({ id, status: 'stopping', due: true })),
      { id: stays, status: 'running', due: true },
    ]);
    expect(await dueOf(plain)).toBeGreaterThan(due);
    expect((await service.call('GET', place(plain, worker.id))).status).toBe(404);
    expect((await service.call('DELETE', place(plain, worker.id))).status).toBe(404);
    expect((await post(plain, { type: 'worker' })).status).toBe(201);
  });
});
