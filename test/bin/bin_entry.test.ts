// The bin as people see it: what is deleted is listed, restored or purged; names, quotas, rights and prices meanwhile.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let service: TestService;
beforeAll(async () => {
  service = await startService({
    worker: true,
    settings: {
      ...{ RETENTION_OF_DELETED_DAYS: '7', S3_PORT: String(await freePort()) },
      QUOTAS: '{"volumes": 3, "volume_storage_gb": 12}',
    },
  });
});
afterAll(() => service.close());

const binOf = async (query = '', project = service.project): Promise<any[]> => {
  const { status, body } = await service.call('GET', `/v2/projects/${project}/bin${query}`);
  expect(status).toBe(200);
  return body.data;
};
const entryOf = async (id: string): Promise<any> => (await binOf(`?resource_id=${id}`))[0];
const restore = (entry: { id: string }, body?: object, options = {}): Promise<Answer> =>
  service.call('POST', `/v2/bin/${entry.id}/restore`, { ...(body && { body }), ...options });
const purge = (entry: { id: string }, options = {}): Promise<Answer> =>
  service.call('DELETE', `/v2/bin/${entry.id}`, options);

async function volume(name: string, size_gb = 1): Promise<any> {
  const made = await service.call('POST', '/v2/volumes', { body: { name, size_gb } });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  return service.settle(`/v2/volumes/${made.body.id}`);
}

async function deleted(place: string): Promise<any> {
  expect((await service.call('DELETE', place)).status).toBe(204);
  return entryOf(path.basename(place));
}

const filesOf = (id: string): string => path.join(service.dataDir, 'volumes', id, 'data');
const rowsOf = async (id: string): Promise<number> =>
  (await service.sql('select 1 from volumes where id = $1', [id])).length;

afterEach(async () => {
  for (const entry of await binOf('?limit=100')) await purge(entry);
  for (const { id } of (await service.call('GET', '/v2/volumes?limit=100')).body.data)
    await purge(await deleted(`/v2/volumes/${id}`));
});

describe('a purge', () => {
  it('waits a day for what is older than a day, and for a protected project', async () => {
    const { id } = await volume('old');
    await service.sql(`update volumes set created_at = now() - interval '25 hours' where id = $1`, [id]);
    const entry = await deleted(`/v2/volumes/${id}`);
    expect(Date.parse(entry.purge_from) - Date.parse(entry.deleted_at)).toBe(24 * 3_600_000);
    const early = await purge(entry);
    expect([early.status, early.body.code]).toEqual([409, 'resource_protected']);
    expect(early.body.detail).toContain(entry.purge_from);
    await service.sql(`update deleted_resources set purge_from = now() where id = $1`, [entry.id]);
    const protect = (deletion_protection: boolean): Promise<Answer> =>
      service.call('PATCH', `/v2/projects/${service.project}`, { body: { deletion_protection } });
    await protect(true);
    expect((await purge(entry)).body.code).toBe('deletion_protected');
    await protect(false);
    expect((await purge(entry)).status).toBe(204);
  });

  it('does not wait for a clock that has stepped back since the deletion', async () => {
    const { id } = await volume('young');
    const entry = await deleted(`/v2/volumes/${id}`);
    const ahead = `update deleted_resources set created_at = now() + interval '1 hour',
      purge_from = now() + interval '1 hour' where id = $1`;
    await service.sql(ahead, [entry.id]);
    expect((await purge(entry)).status).toBe(204);
  });
});

describe('a deleted volume', () => {
  it('is gone from all reads, listed in the bin, and the same after it was restored', async () => {
    const before = await volume('uploads', 2);
    writeFileSync(path.join(filesOf(before.id), 'a.bin'), Buffer.alloc(100_000, 7));
    const entry = await deleted(`/v2/volumes/${before.id}`);
    expect((await service.call('GET', `/v2/volumes/${before.id}`)).status).toBe(404);
    expect((await service.call('GET', '/v2/volumes')).body.data).toEqual([]);
    expect(entry).toEqual({
      ...{ id: expect.stringMatching(/^del_/), project_id: service.project, deleted_at: expect.any(String) },
      resource: { type: 'volume', id: before.id, name: 'uploads' },
      deleted_by: { type: 'user', id: expect.any(String), name: expect.any(String) },
      purge_from: entry.deleted_at,
      kept_until: new Date(Date.parse(entry.deleted_at) + 7 * 86_400_000).toISOString(),
    });
    const answer = await restore(entry);
    expect([answer.status, answer.body]).toEqual([
      200,
      { resource: { type: 'volume', id: before.id, name: 'uploads' }, notes: [] },
    ]);
    const after = await service.settle(`/v2/volumes/${before.id}`);
    expect({ ...after, updated_at: null, used_bytes: null }).toEqual({
      ...{ ...before, updated_at: null, used_bytes: null },
    });
    expect(readFileSync(path.join(filesOf(before.id), 'a.bin'))).toEqual(Buffer.alloc(100_000, 7));
    expect(await binOf()).toEqual([]);
  });

  it('leaves its name and its number free, and its storage counted', async () => {
    const first = await volume('uploads', 5);
    const entry = await deleted(`/v2/volumes/${first.id}`);
    const second = await volume('uploads', 5);
    const usage = (await service.call('GET', `/v2/projects/${service.project}/usage`)).body.quotas;
    expect(usage.find(({ resource }: any) => resource === 'volumes').used).toBe(1);
    expect(usage.find(({ resource }: any) => resource === 'volume_storage_gb').used).toBe(10);
    const refused = await service.call('POST', '/v2/volumes', { body: { name: 'third', size_gb: 5 } });
    expect([refused.status, refused.body.code]).toEqual([403, 'quota_exceeded']);
    const taken = await restore(entry);
    expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'name_taken', 'name']);
    expect(await entryOf(first.id)).toEqual(entry);
    const wrong = await restore(entry, { name: 'Not a slug' });
    expect([wrong.status, wrong.body.errors]).toEqual([
      422,
      [{ field: 'name', code: 'invalid_format', detail: expect.any(String) }],
    ]);
    expect((await restore(entry, { name: 'uploads-before' })).body.resource.name).toBe('uploads-before');
    expect((await service.call('GET', `/v2/volumes/${first.id}`)).body.name).toBe('uploads-before');
    expect((await service.call('GET', `/v2/volumes/${second.id}`)).body.name).toBe('uploads');
  });

  it('is not restored beyond the number that the project may have', async () => {
    const first = await volume('one');
    const entry = await deleted(`/v2/volumes/${first.id}`);
    await Promise.all(['two', 'three', 'four'].map((name) => volume(name)));
    const refused = await restore(entry);
    expect([refused.status, refused.body.code, refused.body.resource]).toEqual([403, 'quota_exceeded', 'volumes']);
    expect(await entryOf(first.id)).toEqual(entry);
  });

  it('is charged until it is purged, then its files go', async () => {
    const { id } = await volume('uploads');
    const open = async (): Promise<unknown[]> =>
      service.sql('select 1 from usage_spans where resource_id = $1 and ended_at is null', [id]);
    const entry = await deleted(`/v2/volumes/${id}`);
    expect(await open()).toHaveLength(1);
    expect(existsSync(filesOf(id))).toBe(true);
    expect((await purge(entry)).status).toBe(204);
    expect(await open()).toHaveLength(0);
    await waitFor('its files go', async () => !existsSync(filesOf(id)) && (await rowsOf(id)) === 0);
    expect([(await purge(entry)).status, (await restore(entry)).status]).toEqual([404, 404]);
  });

  it('is purged when its time is over, and not before', async () => {
    const [early, late] = [await volume('early'), await volume('late')];
    await deleted(`/v2/volumes/${early.id}`);
    const kept = await deleted(`/v2/volumes/${late.id}`);
    await service.sql('update deleted_resources set kept_until = now() where resource_id = $1', [early.id]);
    await service.sql(`update schedules set next_at = now() where id = 'empty_bin'`);
    await waitFor('it is purged', async () => (await rowsOf(early.id)) === 0);
    expect(await binOf()).toEqual([kept]);
    const activity = (await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${early.id}`))
      .body;
    expect(activity.data[0]).toMatchObject({
      ...{ action: 'deleted_resource.expired', actor: { type: 'system' } },
      resource: { type: 'volume', id: early.id, name: 'early' },
    });
  });
});

describe('a deleted observer', () => {
  it('checks nothing, and comes back with its results and settings', async () => {
    const body = {
      ...{ name: 'Front', type: 'uptime', interval_seconds: 60 },
      uptime: { check: 'http', target: 'https://shop.example.com/', headers: [{ name: 'X-Token', value: 'secret' }] },
    };
    const made = (await service.call('POST', '/v2/observers', { body })).body;
    await service.sql(`update observer_checks set check_at = now() + interval '1 hour'`);
    const entry = await deleted(`/v2/observers/${made.id}`);
    expect((await service.call('GET', `/v2/observers/${made.id}`)).status).toBe(404);
    expect(await service.sql('select 1 from observer_checks where observer_id = $1', [made.id])).toEqual([]);
    const again = (await service.call('POST', '/v2/observers', { body })).body;
    expect(again.name).toBe('Front');
    expect((await restore(entry, { name: 'Front 2' })).body).toMatchObject({
      resource: { name: 'Front 2' },
      notes: [],
    });
    const after = (await service.call('GET', `/v2/observers/${made.id}`)).body;
    expect(after).toEqual({ ...made, name: 'Front 2', updated_at: after.updated_at, last_result: after.last_result });
    expect(await service.sql('select 1 from observer_checks where observer_id = $1', [made.id])).toHaveLength(1);
    for (const id of [made.id, again.id]) await service.call('DELETE', `/v2/observers/${id}`);
  });
});

describe('a deleted bucket', () => {
  it('leaves its name free, and comes back with its settings and the grants of access keys', async () => {
    const made = await service.call('POST', '/v2/buckets', { body: { name: 'assets-of-the-bin', versioning: true } });
    expect([made.status, made.text]).toEqual([201, expect.anything()]);
    const { id } = made.body;
    const grants = [{ bucket_id: id, permission: 'read_write' }];
    const key = await service.call('POST', '/v2/bucket_access_keys', { body: { name: 'ci', grants } });
    expect([key.status, key.text]).toEqual([201, expect.anything()]);
    const grantsNow = async (): Promise<any> =>
      (await service.call('GET', `/v2/bucket_access_keys/${key.body.id}`)).body.grants;
    const had = await grantsNow();
    const entry = await deleted(`/v2/buckets/${id}`);
    expect(await grantsNow()).toEqual([]);
    await waitFor('its name is free', async () => {
      const [row] = await service.sql('select parked_at from buckets where id = $1', [id]);
      return row?.parked_at !== null;
    });
    const other = await service.call('POST', '/v2/buckets', { body: { name: 'assets-of-the-bin' } });
    expect(other.status).toBe(201);
    const taken = await restore(entry);
    expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'name_taken', 'name']);
    await purge(await deleted(`/v2/buckets/${other.body.id}`));
    const rows = (bucket: string): Promise<unknown[]> => service.sql('select 1 from buckets where id = $1', [bucket]);
    await waitFor('the other one goes', async () => (await rows(other.body.id)).length === 0);
    expect((await restore(entry)).body.notes).toEqual([]);
    const after = (await service.call('GET', `/v2/buckets/${id}`)).body;
    expect(after).toEqual({ ...made.body, updated_at: after.updated_at });
    expect(await grantsNow()).toEqual(had);
    await purge(await deleted(`/v2/buckets/${id}`));
    await waitFor('its row goes', async () => (await rows(id)).length === 0);
  });
});

describe('who may', () => {
  it('restores with the right to write, and purges with the right to destroy', async () => {
    const { id } = await volume('uploads');
    const entry = await deleted(`/v2/volumes/${id}`);
    const [reader, writer] = [
      await service.mintKey({ scopes: ['read'] }),
      await service.mintKey({ scopes: ['read', 'write'], may_destroy: false }),
    ];
    const viewer = await service.mintKey({ role: 'viewer' });
    const stranger = await service.newProject({ stranger: true });
    expect((await restore(entry, undefined, { key: reader })).body.code).toBe('insufficient_scope');
    expect((await restore(entry, undefined, { key: viewer })).body.code).toBe('role_not_permitted');
    expect((await purge(entry, { key: writer })).body.code).toBe('destroy_not_allowed');
    const foreign = { key: stranger.key, project: stranger.id };
    expect([(await restore(entry, undefined, foreign)).status, (await purge(entry, foreign)).status]).toEqual([
      404, 404,
    ]);
    expect((await restore(entry, undefined, { key: writer })).status).toBe(200);
  });
});

describe('of two who come at once', () => {
  it.each([
    ['two restores', restore, restore],
    ['a restore and a purge', restore, purge],
    ['two purges', purge, purge],
  ])('one is served: %s', async (_, one, other) => {
    for (let round = 0; round < 5; round += 1) {
      const { id } = await volume(`round-${round}`);
      const entry = await deleted(`/v2/volumes/${id}`);
      const answers = await Promise.all([one(entry), other(entry)]);
      expect(answers.filter(({ status }) => status === 404)).toHaveLength(1);
      const isThere = (await service.call('GET', `/v2/volumes/${id}`)).status === 200;
      expect(isThere).toBe(answers.some(({ status }) => status === 200));
      if (isThere) await purge(await deleted(`/v2/volumes/${id}`));
      await waitFor('its row goes', async () => (await rowsOf(id)) === 0);
    }
  });

  it('the periodic task takes nothing that was restored in the same second', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { id } = await volume(`round-${round}`);
      writeFileSync(path.join(filesOf(id), 'a'), 'a');
      const entry = await deleted(`/v2/volumes/${id}`);
      await service.sql('update deleted_resources set kept_until = now() where id = $1', [entry.id]);
      const [, answer] = await Promise.all([
        service.sql(`update schedules set next_at = now() where id = 'empty_bin'`),
        restore(entry),
      ]);
      if (answer.status === 200) {
        expect((await service.settle(`/v2/volumes/${id}`)).status).toBe('available');
        expect(readFileSync(path.join(filesOf(id), 'a'), 'utf8')).toBe('a');
        await purge(await deleted(`/v2/volumes/${id}`));
      } else expect(answer.status).toBe(404);
      await waitFor('its row goes', async () => (await rowsOf(id)) === 0);
    }
  });
});
