import { startService, type Answer, type TestService } from './support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service?.close());

const git = { type: 'git', repository_url: 'https://git.example.com/acme/shop.git' };
let serial = 0;

function uniqueName(): string {
  return `shop-${(serial += 1)}`;
}

function post(body: Record<string, unknown> = {}): Promise<Answer> {
  return service.call('POST', '/v2/applications', { body: { name: uniqueName(), ...body } });
}

async function created(body: Record<string, unknown> = {}): Promise<Answer['body']> {
  const answer = await post(body);
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}

function errorsOf(answer: Answer): [string, string][] {
  expect(answer.status).toBe(422);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

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
      source: { type: 'template', template: 'node-worker', repository_url: null },
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
      [{ source: { type: 'template', template: 'cobol' } }, 'source.template'],
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

describe('source', () => {
  it('takes the addresses that the operator allows', async () => {
    for (const repository_url of [
      'https://git.example.com/a.git',
      'ssh://git@git.example.com:2222/a.git',
      'git@git.example.com:acme/a.git',
      'https://8.8.8.8/a.git',
    ]) {
      expect((await created({ source: { type: 'git', repository_url, branch: 'feature/x' } })).source).toMatchObject({
        type: 'git',
        repository_url,
        branch: 'feature/x',
      });
    }
    const refused = [
      'http://git.example.com/a.git',
      'file:///srv/a.git',
      'ext::sh',
      'https://user:pw@git.example.com/a.git',
      'https://localhost/a.git',
      'https://10.0.0.1/a.git',
      'https://2130706433/a.git',
      'ssh://git@0x7f.1/a.git',
      'git@192.168.1.2:a.git',
      'https://[::1]/a.git',
      'https://[::ffff:10.0.0.1]/a.git',
      'https://169.254.169.254/a',
      'https://intranet/a.git',
    ];
    for (const repository_url of refused) {
      expect([repository_url, ...errorsOf(await post({ source: { type: 'git', repository_url } }))]).toEqual([
        repository_url,
        ['source.repository_url', 'invalid_format'],
      ]);
    }
  });

  it('takes plain, private and local addresses where the settings say so', async () => {
    const open = await startService({
      settings: { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', ALLOW_LOCAL_GIT: '1' },
    });
    try {
      const addresses = [
        'http://git.example.com/a.git',
        'file:///srv/a.git',
        'http://10.0.0.1/a.git',
        'https://localhost/a.git',
      ];
      for (const [index, repository_url] of addresses.entries()) {
        const answer = await open.call('POST', '/v2/applications', {
          body: { name: `open-${index}`, source: { type: 'git', repository_url } },
        });
        expect([repository_url, answer.status]).toEqual([repository_url, 201]);
      }
    } finally {
      await open.close();
    }
  });

  it('wants what its type needs and nothing else', async () => {
    const cases: [Record<string, unknown>, [string, string][]][] = [
      [{ type: 'git' }, [['source.repository_url', 'required']]],
      [{ type: 'image' }, [['source.image', 'required']]],
      [{ type: 'template' }, [['source.template', 'required']]],
      [{ ...git, image: 'shop' }, [['source.image', 'depends_on']]],
      [{ type: 'image', image: 'shop', branch: 'main' }, [['source.branch', 'depends_on']]],
      [{ type: 'git', git_integration_id: 'gin_1' }, [['source.git_integration_id', 'depends_on']]],
      [{ ...git, repository_id: '7' }, [['source.repository_id', 'depends_on']]],
      [{ type: 'svn' }, [['source.type', 'not_in_enum']]],
      [{ ...git, branch: '--upload-pack=x' }, [['source.branch', 'invalid_format']]],
      [{ ...git, branch: 'a..b' }, [['source.branch', 'invalid_format']]],
      [{ ...git, branch: 'b'.repeat(256) }, [['source.branch', 'too_long']]],
      [{ type: 'image', image: 'Not An Image' }, [['source.image', 'invalid_format']]],
      [{ type: 'image', image: 'shop', tag: '1' }, [['source.tag', 'unknown_field']]],
      [{}, [['source.type', 'required']]],
    ];
    for (const [source, wanted] of cases) expect([source, errorsOf(await post({ source }))]).toEqual([source, wanted]);
  });

  it('merges a change, lets a repository or type replace the old, and is removed by null', async () => {
    const { id } = await created({ source: { ...git, branch: 'main' } });
    const patch = async (source: unknown): Promise<Answer> =>
      service.call('PATCH', `/v2/applications/${id}`, { body: { source } });
    expect((await patch({ branch: 'next' })).body.source).toMatchObject({ ...git, branch: 'next' });
    expect((await patch({ repository_url: 'https://git.example.com/b.git' })).body.source).toMatchObject({
      repository_url: 'https://git.example.com/b.git',
      branch: 'next',
    });
    expect((await patch({ branch: null })).body.source).toMatchObject({ type: 'git', branch: null });
    expect(errorsOf(await patch({ repository_url: null }))).toEqual([['source.repository_url', 'required']]);
    expect(errorsOf(await patch({ image: 'shop' }))).toEqual([['source.image', 'depends_on']]);
    expect((await patch({ type: 'image', image: 'shop' })).body.source).toMatchObject({
      type: 'image',
      image: 'shop',
      repository_url: null,
    });
    expect((await patch(null)).body.source).toBeNull();
    expect(errorsOf(await patch({ branch: 'main' }))).toEqual([['source.type', 'required']]);
  });
});

describe('update', () => {
  it('renames without touching the host name, clears with null, refuses what is fixed', async () => {
    const application = await created({ description: 'Old' });
    const path = `/v2/applications/${application.id}`;
    const renamed = await service.call('PATCH', path, {
      body: { name: 'renamed', description: null, application_type: 'm-1gb' },
    });
    expect(renamed.body).toEqual({
      ...application,
      name: 'renamed',
      description: null,
      application_type: 'm-1gb',
      updated_at: renamed.body.updated_at,
    });
    expect(renamed.body.updated_at >= application.updated_at).toBe(true);
    expect(
      errorsOf(
        await service.call('PATCH', path, {
          body: { region: 'local', preset: 'node-web', default_hostname: 'x', name: null },
        }),
      ),
    ).toEqual([
      ['region', 'immutable'],
      ['preset', 'immutable'],
      ['default_hostname', 'immutable'],
      ['name', 'required'],
    ]);
    expect(errorsOf(await service.call('PATCH', path, { body: {} }))).toEqual([['', 'required']]);
    await created({ name: 'occupied' });
    expect((await service.call('PATCH', path, { body: { name: 'occupied' } })).body).toMatchObject({
      status: 409,
      code: 'name_taken',
      field: 'name',
    });
  });

  it('honours If-Match and raises the ETag', async () => {
    const { id } = await created();
    const path = `/v2/applications/${id}`;
    const etag = (await service.call('GET', path)).headers.get('etag') as string;
    const changed = await service.call('PATCH', path, { body: { description: 'New' }, headers: { 'If-Match': etag } });
    expect(changed.status).toBe(200);
    expect(changed.headers.get('etag')).not.toBe(etag);
    expect(
      (await service.call('PATCH', path, { body: { description: 'Newer' }, headers: { 'If-Match': etag } })).status,
    ).toBe(412);
    expect((await service.call('DELETE', path, { headers: { 'If-Match': etag } })).status).toBe(412);
    expect(
      (await service.call('GET', path, { headers: { 'If-None-Match': changed.headers.get('etag') as string } })).status,
    ).toBe(304);
  });
});

describe('deletion', () => {
  it('takes children along, keeps host names taken until they are torn down, and sets volumes free', async () => {
    const { id, default_hostname } = await created({ name: 'doomed', preset: 'node-web' });
    const volume = await service.call('POST', '/v2/volumes', {
      body: { name: 'data', size_gb: 1, application_id: id, mount_path: '/data' },
    });
    const other = await service.call('POST', '/v2/volumes', {
      body: { name: 'young', size_gb: 1, application_id: id, mount_path: '/young' },
    });
    await service.sql(`update volumes set status = 'in_use' where id = $1`, [volume.body.id]);
    const domain = { hostname: 'doomed.example.com' };
    expect((await service.call('POST', `/v2/applications/${id}/domains`, { body: domain })).status).toBe(201);

    expect((await service.call('DELETE', `/v2/applications/${id}`)).status).toBe(204);
    for (const path of ['', '/env', '/domains', '/settings'])
      expect((await service.call('GET', `/v2/applications/${id}${path}`)).status).toBe(404);
    expect((await service.call('DELETE', `/v2/applications/${id}`)).status).toBe(404);
    expect((await service.call('GET', `/v2/volumes/${volume.body.id}`)).body).toMatchObject({
      status: 'available',
      application_id: null,
      mount_path: null,
    });
    expect((await service.call('GET', `/v2/volumes/${other.body.id}`)).body).toMatchObject({
      status: 'provisioning',
      application_id: null,
      mount_path: null,
    });
    expect(
      await service.sql(
        `select 1 from environment_variables where application_id = $1 union all select 1 from processes
          where application_id = $1`,
        [id],
      ),
    ).toEqual([]);
    expect(
      await service.sql(
        `select next_at <= now() as due from applications where id = $1 and deleted_at is not null
          and default_hostname = $2`,
        [id, default_hostname],
      ),
    ).toEqual([{ due: true }]);
    expect(
      await service.sql(
        'select next_at <= now() as due from domains where application_id = $1 and deleted_at is not null',
        [id],
      ),
    ).toEqual([{ due: true }]);
    const again = await created({ name: 'doomed' });
    expect((await service.call('POST', `/v2/applications/${again.id}/domains`, { body: domain })).body).toMatchObject({
      status: 409,
      code: 'domain_taken',
    });
  });
});

it('is purged behind the answer, domains first', async () => {
  const working = await startService({ worker: true });
  try {
    const { body } = await working.call('POST', '/v2/applications', { body: { name: 'passing', preset: 'node-web' } });
    await working.call('POST', `/v2/applications/${body.id}/domains`, { body: { hostname: 'passing.example.com' } });
    expect((await working.call('DELETE', `/v2/applications/${body.id}`)).status).toBe(204);
    const left = (): Promise<unknown[]> => working.sql('select id from applications union all select id from domains');
    for (let turn = 0; turn < 200 && (await left()).length; turn += 1)
      await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await left()).toEqual([]);
  } finally {
    await working.close();
  }
});

it('is deleted while its volumes are moved about, and leaves none attached', async () => {
  for (let round = 0; round < 10; round += 1) {
    const { id } = await created();
    const volume = await service.call('POST', '/v2/volumes', {
      body: { name: `moved-${round}`, size_gb: 1, application_id: id, mount_path: '/data' },
    });
    const path = `/v2/volumes/${volume.body.id}`;
    const moves = ['/one', '/two', '/three'].map((mount_path) =>
      service.call('PATCH', path, { body: { application_id: id, mount_path } }),
    );
    const [deleted, ...moved] = await Promise.all([service.call('DELETE', `/v2/applications/${id}`), ...moves]);
    expect(deleted.status).toBe(204);
    for (const { status, body } of moved)
      expect([200, 'reference_not_found']).toContain(status === 200 ? status : body.code);
    expect((await service.call('GET', path)).body).toMatchObject({ application_id: null, mount_path: null });
  }
});

describe('activity', () => {
  it('names who changed what, and never a value', async () => {
    const { id } = await created({ name: 'audited' });
    await service.call('PATCH', `/v2/applications/${id}`, { body: { description: 'A plain text' } });
    await service.call('DELETE', `/v2/applications/${id}`);
    const rows = await service.sql(
      'select action, resource_type, resource_name, changed_fields from activity where resource_id = $1 order by id',
      [id],
    );
    expect(rows.map(({ action }) => action)).toEqual([
      'application.created',
      'application.updated',
      'application.deleted',
    ]);
    expect(rows[1]).toEqual({
      action: 'application.updated',
      resource_type: 'application',
      resource_name: 'audited',
      changed_fields: ['description'],
    });
  });
});
