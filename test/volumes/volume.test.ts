// Volumes as rows: fields, rules, references, filters (docs/contract/resources.md §10). What the driver does with them:
// volume_states.test.ts.
import { startService, type Answer } from '../support/service';
import {
  application,
  created,
  errorsOf,
  newName,
  patch,
  post,
  service,
  setUpVolumes,
} from '../support/deployments/volume_cases';

setUpVolumes();

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
      deletion_protection: false,
      backup_schedule: null,
      backup_retention_days: 7,
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

  it.each([0, -1])('refuses %i gigabytes as the schema says', async (size_gb) => {
    expect(errorsOf(await post({ size_gb }))).toEqual([['size_gb', 'too_small']]);
  });

  it.each([1001, 2 ** 31 - 1])('refuses %i gigabytes with the bounds', async (size_gb) => {
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
