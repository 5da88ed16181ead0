import { startService } from '../support/service';
import { created, errorsOf, git, post, service, setUpApplications } from '../support/deployments/application_cases';

setUpApplications();

describe('creation', () => {
  it('fills in the defaults and one web process, and deploys nothing', async () => {
    const answer = await post({ name: 'first' });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('location')).toBe(`${service.url}/v2/applications/${answer.body.id}`);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^app_[0-9a-hjkmnp-tv-z]{26}$/),
      project_id: service.project,
      name: 'first',
      description: null,
      region: 'local',
      application_type: 's-512mb',
      source: null,
      preset: null,
      default_hostname: expect.stringMatching(/^first-[0-9b-z]{6}\.localhost$/),
      status: 'new',
      status_reason: null,
      current_deployment_id: null,
      auto_deploy_enabled: false,
      deletion_protection: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: answer.body.created_at,
    });
    const rows = await service.sql(
      `select id, project_id, type, command, application_type, instances, running_instances, status from processes
        where application_id = $1`,
      [answer.body.id],
    );
    expect(rows).toEqual([
      {
        id: expect.stringMatching(/^prc_/),
        project_id: service.project,
        type: 'web',
        command: null,
        application_type: null,
        instances: 1,
        running_instances: 0,
        status: 'idle',
      },
    ]);
    expect((await service.call('GET', `/v2/applications/${answer.body.id}`)).body).toEqual(answer.body);
  });

  it('fills source, size, processes and variables from a preset', async () => {
    const application = await created({ preset: 'node-worker' });
    expect(application).toMatchObject({
      preset: 'node-worker',
      application_type: 's-512mb',
      source: { type: 'preset', preset: 'node-worker', template: 'node-worker', repository_url: null },
    });
    const processes = await service.sql(
      'select type, command, instances from processes where application_id = $1 order by type',
      [application.id],
    );
    expect(processes).toEqual([
      { type: 'web', command: null, instances: 1 },
      { type: 'worker', command: null, instances: 1 },
    ]);
    const { body } = await service.call('GET', `/v2/applications/${application.id}/env`);
    expect(body.data).toMatchObject([
      { key: 'NODE_ENV', value: 'production', available_at: 'both' },
      { key: 'WORK_EVERY_SECONDS', value: '10', available_at: 'both' },
    ]);
    expect((await created({ preset: 'static-site' })).application_type).toBe('xs-256mb');
    expect((await created({ preset: 'static-site', application_type: 'm-1gb' })).application_type).toBe('m-1gb');
  });

  it('refuses references that name nothing', async () => {
    const cases: [Record<string, unknown>, string][] = [
      [{ region: 'nowhere' }, 'region'],
      [{ application_type: 'gigantic' }, 'application_type'],
      [{ preset: 'cobol' }, 'preset'],
      [{ source: { type: 'preset', preset: 'cobol' } }, 'source.preset'],
      [
        { source: { type: 'git', git_integration_id: 'gin_01h455vb4pex5vsknk084sn02q', repository_id: '7' } },
        'source.git_integration_id',
      ],
      [
        { source: { type: 'git', shared_repository_id: 'srp_01h455vb4pex5vsknk084sn02q' } },
        'source.shared_repository_id',
      ],
      [
        { source: { type: 'image', image: 'shop', registry_id: 'reg_01h455vb4pex5vsknk084sn02q' } },
        'source.registry_id',
      ],
    ];
    for (const [body, field] of cases) {
      const answer = await post(body);
      expect([answer.status, answer.body.code, answer.body.field]).toEqual([422, 'reference_not_found', field]);
    }
  });

  it('reports all mistakes of a body together', async () => {
    const answer = await service.call('POST', '/v2/applications', {
      body: {
        name: 'Shop_1',
        description: 'x'.repeat(501),
        preset: 'node-web',
        source: { ...git, shared_repository_id: 'srp_1' },
        status: 'new',
        color: 1,
        region: null,
      },
    });
    expect(errorsOf(answer).sort()).toEqual([
      ['color', 'unknown_field'],
      ['description', 'too_long'],
      ['name', 'invalid_format'],
      ['preset', 'mutually_exclusive'],
      ['region', 'required'],
      ['source', 'mutually_exclusive'],
      ['source.repository_url', 'mutually_exclusive'],
      ['source.shared_repository_id', 'mutually_exclusive'],
      ['status', 'immutable'],
    ]);
  });

  it('refuses a size that the host can not run', async () => {
    const { platform } = service;
    const facts = platform.facts;
    const small = { ...(await facts()), memory_total_bytes: 600 * 2 ** 20 };
    platform.facts = () => Promise.resolve(small);
    try {
      const answer = await post({ application_type: 'm-1gb' });
      expect([answer.status, answer.body.code, answer.body.regions]).toEqual([409, 'capacity_unavailable', []]);
      const { id } = await created();
      expect(
        (await service.call('PATCH', `/v2/applications/${id}`, { body: { application_type: 'm-1gb' } })).status,
      ).toBe(409);
    } finally {
      platform.facts = facts;
    }
  });

  it('lets one of many twins have the name', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => service.call('POST', '/v2/applications', { body: { name: 'twins' } })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
    expect(answers.filter(({ status }) => status === 409).map(({ body }) => [body.code, body.field])).toEqual(
      Array(7).fill(['name_taken', 'name']),
    );
    expect(
      await service.sql(
        `select count(*) from processes p join applications a on a.id = p.application_id where a.name = 'twins'`,
      ),
    ).toEqual([{ count: 1 }]);
    const elsewhere = await service.newProject();
    expect(
      (await service.call('POST', `/v2/projects/${elsewhere.id}/applications`, { body: { name: 'twins' } })).status,
    ).toBe(201);
  });

  it('stops at the quota', async () => {
    const limited = await startService({ settings: { QUOTAS: '{"applications": 1}' } });
    try {
      const answers = await Promise.all(
        ['one', 'two'].map((name) => limited.call('POST', '/v2/applications', { body: { name } })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 403]);
      expect(answers.find(({ status }) => status === 403)?.body).toMatchObject({
        code: 'quota_exceeded',
        resource: 'applications',
        used: 1,
        limit: 1,
      });
    } finally {
      await limited.close();
    }
  });
});
