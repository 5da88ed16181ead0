// Volumes changed, deleted and read as rows (docs/contract/resources.md §10).
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

const settle = (id: string, status = 'available'): Promise<unknown> =>
  service.sql(`update volumes set status = $2, enforcement = 'soft' where id = $1`, [id, status]);

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
    for (const size_gb of [10, 9, 1]) {
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
