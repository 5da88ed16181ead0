// Applications changed and deleted as rows (docs/contract/resources.md §3).
import { startService } from '../support/service';
import { created, errorsOf, service, setUpApplications } from '../support/deployments/application_cases';

setUpApplications();

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
