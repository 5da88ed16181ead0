// Process types (docs/contract/resources.md §7). Their scaling: process_scale.test.ts.
import {
  BOUNDS,
  created,
  errorsOf,
  newApplication,
  place,
  post,
  service,
  setUpProcesses,
  web,
} from '../support/deployments/process_cases';

setUpProcesses();

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
      effective_command: 'npm run worker',
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
