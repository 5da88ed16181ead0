// What must hold when requests meet, or when a cache is a moment behind.
import { mintRequestId } from '../../core/ids';
import { named } from '../../db/statement';
import { makeContext } from '../../server/platform/context';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"volume_storage_gb": 100}' } });
});
afterAll(() => service.close());

const newVolume = (name: string, project = service.project): Promise<Answer> =>
  service.call('POST', '/v2/volumes', { body: { name, size_gb: 10 }, project });

it('volumes that grow at the same time keep within the quota together', async () => {
  const volumes = await Promise.all(['a-1', 'b-2', 'c-3', 'd-4', 'e-5'].map((name) => newVolume(name)));
  const grown = await Promise.all(
    volumes.map(({ body }) => service.call('PATCH', `/v2/volumes/${body.id}`, { body: { size_gb: 50 } })),
  );
  expect(grown.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403, 403]);
  const { quotas } = (await service.call('GET', `/v2/projects/${service.project}/usage`)).body;
  expect(quotas).toContainEqual({ resource: 'volume_storage_gb', used: 90, limit: 100 });
});

it('nothing is made in a project that has just gone, whatever the cache of accesses says', async () => {
  const project = await service.newProject();
  const list = (): Promise<Answer> => service.call('GET', '/v2/volumes', { project: project.id });
  expect((await list()).status).toBe(200);
  await service.sql('update projects set deleted_at = now() where id = $1', [project.id]);
  expect((await list()).status).toBe(200);
  for (const place of ['volumes', 'applications']) {
    const made = await service.call('POST', `/v2/${place}`, {
      body: { name: 'late', ...(place === 'volumes' && { size_gb: 1 }) },
      project: project.id,
    });
    expect([place, made.status, made.body.code]).toEqual([place, 404, 'project_not_found']);
  }
  expect(await service.sql('select id from volumes where project_id = $1', [project.id])).toEqual([]);
});

it('a second try after a deadlock answers for itself', async () => {
  const ctx = makeContext(service.platform, {
    request_id: mintRequestId(),
    address: '',
    user_agent: '',
    project_header: undefined,
  });
  ctx.reply.headers['RateLimit-Limit'] = '1';
  let tries = 0;
  await ctx.transact(async (inner) => {
    tries += 1;
    if (tries > 1) return;
    Object.assign(inner.reply, { status: 201, etag: '"1-0"' });
    await inner.sql.query(named(`do $$ begin raise exception using errcode = '40P01'; end $$`), []);
  });
  expect([tries, ctx.reply]).toEqual([2, { status: null, etag: null, headers: { 'RateLimit-Limit': '1' } }]);
});
