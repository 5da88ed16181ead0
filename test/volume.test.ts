// Volumes as rows: fields, rules, references, filters (docs/contract/resources.md §10). What the driver does with them:
// volume_states.test.ts.
import { startService, type Answer, type TestService } from './support/service';

let service: TestService;
let application: string;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"volume_storage_gb": 10000, "volumes": 1000}' } });
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
});

afterAll(() => service.close());

let serial = 0;
const newName = (): string => `volume-${(serial += 1)}`;
const post = (body: Record<string, unknown>): Promise<Answer> =>
  service.call('POST', '/v2/volumes', { body: { name: newName(), size_gb: 10, ...body } });
const patch = (id: string, body: unknown): Promise<Answer> => service.call('PATCH', `/v2/volumes/${id}`, { body });
const settle = (id: string, status = 'available'): Promise<unknown> =>
  service.sql(`update volumes set status = $2, enforcement = 'soft' where id = $1`, [id, status]);

async function created(body: Record<string, unknown> = {}): Promise<Answer['body']> {
  const answer = await post(body);
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}

function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

describe('creation', () => {
  it('answers everything that is promised', async () => {
    const made = await post({ name: 'uploads' });
    expect([made.status, made.headers.get('location')]).toEqual([201, `${service.url}/v2/volumes/${made.body.id}`]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^vol_[0-9a-hjkmnp-tv-z]{26}$/),
      project_id: service.project,
      name: 'uploads',
      size_gb: 10,
      region: 'local',
      application_id: null,
      mount_path: null,
      status: 'provisioning',
      status_reason: null,
      enforcement: null,
      used_bytes: null,
      over_quota: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: made.body.created_at,
    });
    expect((await service.call('GET', `/v2/volumes/${made.body.id}`)).body).toEqual(made.body);
  });

  it('attaches where an application is named', async () => {
    expect(await created({ application_id: application, mount_path: '/data' })).toMatchObject({
      application_id: application,
      mount_path: '/data',
      region: 'local',
      status: 'provisioning',
    });
  });

  it('works in the project of the path too', async () => {
    const other = await service.newProject();
    const made = await service.call('POST', `/v2/projects/${other.id}/volumes`, { body: { name: 'twin', size_gb: 1 } });
    expect([made.status, made.body.project_id]).toEqual([201, other.id]);
    expect((await service.call('GET', `/v2/projects/${other.id}/volumes`)).body.data).toEqual([made.body]);
  });

  const mistakes: [Record<string, unknown>, [string, string][]][] = [
    [{ name: undefined }, [['name', 'required']]],
    [{ name: 'ab' }, [['name', 'too_short']]],
    [{ name: 'x'.repeat(41) }, [['name', 'too_long']]],
    [{ name: 'Uploads' }, [['name', 'invalid_format']]],
    [{ name: 'a--b' }, [['name', 'invalid_format']]],
    [{ name: '-abc' }, [['name', 'invalid_format']]],
    [{ size_gb: undefined }, [['size_gb', 'required']]],
    [{ size_gb: '10' }, [['size_gb', 'invalid_type']]],
    [{ size_gb: 1.5 }, [['size_gb', 'invalid_type']]],
    [{ region: null }, [['region', 'required']]],
    [{ status: 'available' }, [['status', 'immutable']]],
    [{ created_at: 'x' }, [['created_at', 'immutable']]],
    [{ colour: 'red' }, [['colour', 'unknown_field']]],
    [{ mount_path: '/data' }, [['mount_path', 'depends_on']]],
    [{ application_id: 'app_01h455vb4pex5vsknk084sn02q' }, [['application_id', 'depends_on']]],
  ];

  it.each(mistakes)('refuses %j', async (body, wanted) => {
    expect(errorsOf(await post(body))).toEqual(wanted);
  });

  it.each(['data', '/', '/a/../b', '/proc/x', '/sys', '/dev/shm', `/${'x'.repeat(255)}`])(
    'refuses the mount path %s',
    async (mount_path) => {
      const [[field, code] = []] = errorsOf(await post({ application_id: application, mount_path }));
      expect([field, ['invalid_format', 'too_long'].includes(String(code))]).toEqual(['mount_path', true]);
    },
  );

  it.each([0, -1, 1001, 2 ** 31 - 1])('refuses %i gigabytes with the bounds', async (size_gb) => {
    expect(await post({ size_gb })).toMatchObject({
      status: 422,
      body: { code: 'volume_size_out_of_range', min_gb: 1, max_gb: 1000 },
    });
  });

  it('refuses what its references do not lead to', async () => {
    expect(await post({ region: 'nowhere' })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'region' },
    });
    expect(await post({ application_id: 'app_01h455vb4pex5vsknk084sn02q', mount_path: '/x' })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'application_id' },
    });
    expect(await post({ application_id: 'shop', mount_path: '/x' })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'application_id' },
    });
  });

  it('refuses an application of another region', async () => {
    const { body } = await service.call('POST', '/v2/applications', { body: { name: 'far-away' } });
    await service.sql(`update applications set region = 'mars' where id = $1`, [body.id]);
    expect(await post({ region: 'local', application_id: body.id, mount_path: '/far' })).toMatchObject({
      status: 422,
      body: { code: 'region_mismatch' },
    });
    const { id } = await created();
    expect(await patch(id, { application_id: body.id, mount_path: '/far' })).toMatchObject({
      status: 422,
      body: { code: 'region_mismatch' },
    });
  });

  it('has names once in a project, also under a race', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => post({ name: 'racing' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
    for (const { status, body } of answers)
      if (status === 409) expect(body).toMatchObject({ code: 'name_taken', field: 'name' });
  });

  it('has mount paths once in an application', async () => {
    await created({ application_id: application, mount_path: '/once' });
    expect(await post({ application_id: application, mount_path: '/once' })).toMatchObject({
      status: 409,
      body: { code: 'mount_path_taken' },
    });
  });
});

describe('quotas', () => {
  it('count volumes and gigabytes, at creation and growth, under a race too', async () => {
    const small = await startService({ settings: { QUOTAS: '{"volumes": 3, "volume_storage_gb": 20}' } });
    const make = (size_gb: number, name = newName()): Promise<Answer> =>
      small.call('POST', '/v2/volumes', { body: { name, size_gb } });
    try {
      const race = await Promise.all(Array.from({ length: 6 }, () => make(5)));
      expect(race.filter(({ status }) => status === 201)).toHaveLength(3);
      expect(race.find(({ status }) => status === 403)?.body).toMatchObject({
        code: 'quota_exceeded',
        resource: 'volumes',
        used: 3,
        limit: 3,
      });
      const [first] = race.filter(({ status }) => status === 201).map(({ body }) => body);
      expect(await small.call('PATCH', `/v2/volumes/${first.id}`, { body: { size_gb: 11 } })).toMatchObject({
        status: 403,
        body: { resource: 'volume_storage_gb', used: 15, limit: 20 },
      });
      expect((await small.call('PATCH', `/v2/volumes/${first.id}`, { body: { size_gb: 10 } })).status).toBe(200);
      expect((await small.call('DELETE', `/v2/volumes/${first.id}`)).status).toBe(204);
      expect((await make(10)).status).toBe(201);
    } finally {
      await small.close();
    }
  });
});

describe('change', () => {
  it('renames, and refuses taken names, nothing and nulls', async () => {
    const [one, two] = [await created(), await created()];
    expect((await patch(one.id, { name: 'renamed' })).body).toMatchObject({ name: 'renamed', size_gb: 10 });
    expect(await patch(two.id, { name: 'renamed' })).toMatchObject({ status: 409, body: { code: 'name_taken' } });
    expect((await patch(one.id, { name: 'renamed' })).status).toBe(200);
    expect(errorsOf(await patch(one.id, {}))).toEqual([['', 'required']]);
    expect(errorsOf(await patch(one.id, { name: null, size_gb: null }))).toEqual([
      ['name', 'required'],
      ['size_gb', 'required'],
    ]);
    expect(errorsOf(await patch(one.id, { region: 'local' }))).toEqual([['region', 'immutable']]);
  });

  it('grows only, and keeps provisioning while it is made', async () => {
    const { id } = await created({ size_gb: 10 });
    for (const size_gb of [10, 9, 1, 0, -5]) {
      expect(await patch(id, { size_gb })).toMatchObject({
        status: 422,
        body: { code: 'volume_size_must_increase', current_size_gb: 10, requested_size_gb: size_gb },
      });
    }
    expect(await patch(id, { size_gb: 1001 })).toMatchObject({
      status: 422,
      body: { code: 'volume_size_out_of_range', max_gb: 1000 },
    });
    expect((await patch(id, { size_gb: 20 })).body).toMatchObject({ size_gb: 20, status: 'provisioning' });
    await settle(id);
    expect((await patch(id, { size_gb: 30 })).body).toMatchObject({ size_gb: 30, status: 'resizing' });
    expect(await patch(id, { size_gb: 40 })).toMatchObject({
      status: 409,
      body: { code: 'resource_busy', resource_status: 'resizing', retryable: true },
    });
    expect((await patch(id, { name: newName() })).status).toBe(200);
  });

  it('of many growths at once, none is lost and none shrinks', async () => {
    const { id } = await created({ size_gb: 1 });
    const sizes = [5, 3, 9, 7, 2, 8];
    await Promise.all(sizes.map((size_gb) => patch(id, { size_gb })));
    expect((await service.call('GET', `/v2/volumes/${id}`)).body.size_gb).toBe(9);
  });

  it('attaches, moves the mount, moves to another application, detaches', async () => {
    const { id } = await created();
    const second = (await service.call('POST', '/v2/applications', { body: { name: newName() } })).body.id;
    await settle(id);
    expect(errorsOf(await patch(id, { application_id: application }))).toEqual([['application_id', 'depends_on']]);
    expect(errorsOf(await patch(id, { mount_path: '/m' }))).toEqual([['mount_path', 'depends_on']]);
    expect((await patch(id, { application_id: application, mount_path: '/m1' })).body).toMatchObject({
      status: 'in_use',
      application_id: application,
      mount_path: '/m1',
    });
    expect((await patch(id, { mount_path: '/m2' })).body).toMatchObject({ status: 'in_use', mount_path: '/m2' });
    expect(errorsOf(await patch(id, { mount_path: null }))).toEqual([['application_id', 'depends_on']]);
    expect((await patch(id, { application_id: second })).body).toMatchObject({
      application_id: second,
      mount_path: '/m2',
    });
    expect((await patch(id, { application_id: null })).body).toMatchObject({
      status: 'available',
      application_id: null,
      mount_path: null,
    });
  });
});

describe('deletion', () => {
  it('is refused while attached, and then complete', async () => {
    const { id, name } = await created({ application_id: application, mount_path: '/doomed' });
    expect(await service.call('DELETE', `/v2/volumes/${id}`)).toMatchObject({
      status: 409,
      body: { code: 'resource_in_use', dependents: [{ type: 'application', id: application }] },
    });
    await patch(id, { application_id: null });
    expect((await service.call('DELETE', `/v2/volumes/${id}`)).status).toBe(204);
    for (const method of ['GET', 'PATCH', 'DELETE'])
      expect(
        (await service.call(method, `/v2/volumes/${id}`, { body: method === 'PATCH' ? { name: 'gone' } : undefined }))
          .status,
      ).toBe(404);
    expect((await post({ name })).status).toBe(201);
  });
});

describe('the list', () => {
  it('filters by each field and by all together', async () => {
    const own = await service.newProject();
    const place = `/v2/projects/${own.id}/volumes`;
    const app = (await service.call('POST', `/v2/projects/${own.id}/applications`, { body: { name: 'own' } })).body.id;
    const [one, two] = [
      (await service.call('POST', place, { body: { name: 'one', size_gb: 1 } })).body,
      (await service.call('POST', place, { body: { name: 'two', size_gb: 2, application_id: app, mount_path: '/d' } }))
        .body,
    ];
    await settle(two.id, 'in_use');
    const names = async (query: string): Promise<string[]> =>
      (await service.call('GET', `${place}?${query}`)).body.data.map(({ name }: { name: string }) => name);
    expect(await names('')).toEqual(['two', 'one']);
    expect(await names('name=one')).toEqual(['one']);
    expect(await names('name=ONE')).toEqual([]);
    expect(await names('status=in_use')).toEqual(['two']);
    expect(await names('region=local')).toHaveLength(2);
    expect(await names(`application_id=${app}`)).toEqual(['two']);
    expect(await names(`application_id=${app}&name=one`)).toEqual([]);
    expect(await names('sort=size_gb')).toEqual(['one', 'two']);
    expect(await names('sort=-name')).toEqual(['two', 'one']);
    expect(one.project_id).toBe(own.id);
  });

  it('of size limits is that of the regions', async () => {
    const { body } = await service.call('GET', '/v2/volume_size_limits', { project: null });
    expect(body).toEqual({
      data: [{ region: 'local', min_gb: 1, max_gb: 1000, step_gb: 1, default_gb: 10 }],
      next_cursor: null,
    });
    expect((await service.call('GET', '/v2/volume_size_limits?region=mars')).body.data).toEqual([]);
  });
});

describe('GraphQL', () => {
  it('does the same', async () => {
    const made = await service.graphql(
      `mutation ($input: CreateVolumeInput!) { createVolume(input: $input) {
        id name status application { id name } } }`,
      { input: { name: 'graph', size_gb: 1, application_id: application, mount_path: '/graph' } },
    );
    expect(made.data.createVolume).toMatchObject({
      name: 'graph',
      status: 'provisioning',
      application: { id: application, name: 'shop' },
    });
    const { id } = made.data.createVolume;
    const grown = await service.graphql(
      `mutation ($id: ID!) { updateVolume(id: $id, input: { size_gb: 2, application_id: null }) {
        size_gb application_id application { id } } }`,
      { id },
    );
    expect(grown.data.updateVolume).toEqual({ size_gb: 2, application_id: null, application: null });
    const shrunk = await service.graphql(
      `mutation ($id: ID!) { updateVolume(id: $id, input: { size_gb: 1 }) { id } }`,
      { id },
    );
    expect(shrunk.errors?.[0].extensions).toMatchObject({
      code: 'volume_size_must_increase',
      status: 422,
      current_size_gb: 2,
      requested_size_gb: 1,
    });
    expect((await service.graphql(`mutation ($id: ID!) { deleteVolume(id: $id) }`, { id })).data).toEqual({
      deleteVolume: true,
    });
    expect(
      (await service.graphql(`query ($id: ID!) { getVolume(id: $id) { id } }`, { id })).errors?.[0].extensions.code,
    ).toBe('not_found');
  });
});
