/** @user any */
// Periodic work: what it clears away, what it keeps, and that a torn-down application goes when nothing holds it.
import { driverContext } from '../../core/driver';
import { startLoop, type Loop } from '../../jobs/loop';
import { allJobs } from '../../jobs/all_jobs';
import { job as schedules } from '../../jobs/periodic_task';
import { job as volumes } from '../../jobs/volumes/volume';
import { startService } from '../support/service';
import { openWorkshop, until, type Workshop } from '../support/runner/workshop';

let workshop: Workshop;
let loop: Loop;

beforeAll(async () => {
  workshop = await openWorkshop();
  await workshop.rows(`insert into activity (id, account_id, action, actor, resource_type, resource_id, created_at)
    select 'act_' || n, 'acc_1', 'volume.created', '{}', 'volume', 'vol_1',
      now() - interval '80 days' - n * interval '1 day' / 100 from generate_series(1, 3500) as n`);
  await workshop.rows(
    `insert into idempotency_records (scope, fingerprint, created_at)
      values ('old', 'f', now() - interval '25 hours'), ('new', 'f', now() - interval '23 hours')`,
  );
  await workshop.rows(
    `insert into users (id, account_id, email, name) values ('usr_1', 'acc_1', 'owner@example.com', 'Owner')`,
  );
  await workshop.rows(`insert into sessions (id, hash, user_id, address, user_agent, expires_at)
    values ('ses_old', 'a', 'usr_1', '127.0.0.1', 'x', now() - interval '1 minute'),
      ('ses_new', 'b', 'usr_1', '127.0.0.1', 'x', now() + interval '1 minute')`);
  await workshop.rows(`insert into invitations (id, project_id, email, role, hash, invited_by, expires_at)
    select 'inv_' || name, (select min(id) from projects), name || '@example.com', 'viewer', name, 'usr_1', ends
    from (values ('old', now() - interval '1 minute'), ('new', now() + interval '1 minute')) as row (name, ends)`);
  await workshop.rows(`insert into rate_windows (bucket, window_start, used)
    values ('old', (extract(epoch from now()) * 1000)::bigint - 3600000, 1), ('new', (extract(epoch
      from now()) * 1000)::bigint, 1)`);
});
afterAll(async () => {
  await loop.stop();
  await workshop.close();
});

async function report(id: string): Promise<Record<string, unknown> | null> {
  return (await workshop.row<{ observed: Record<string, unknown> | null }>('schedules', id))?.observed ?? null;
}

test('what is past its time goes, in batches; what is not stays', async () => {
  const driver = workshop.parts.drivers.volumes.default;
  const ctx = driverContext(5_000);
  const orphan = { id: 'vol_orphan', spec: { project_id: 'prj_1', size_gb: 1 } };
  await driver.ensure(orphan, await driver.observe(orphan, ctx), ctx);
  loop = startLoop(workshop.parts, { pollMs: 50, jobs: [schedules, volumes] });
  await until('every task has run to its end', async () => {
    const [tasks] = await workshop.rows<{ all: number; ended: number }>(
      `select count(*)::int as all, count(*) filter (where observed is not null
        and next_at > now() + interval '5 seconds')::int as ended from schedules`,
    );
    return tasks !== undefined && tasks.all > 0 && tasks.ended === tasks.all;
  });
  expect(
    await workshop.rows(
      `select count(*)::int as old, min(created_at) > now() - interval '90 days' as kept from activity`,
    ),
  ).toEqual([{ old: expect.any(Number), kept: true }]);
  const [left] = await workshop.rows<{ n: number }>('select count(*)::int as n from activity');
  expect(left?.n).toBeGreaterThanOrEqual(999);
  expect(left?.n).toBeLessThanOrEqual(1000);
  expect(await workshop.rows('select scope from idempotency_records')).toEqual([{ scope: 'new' }]);
  expect(await workshop.rows('select id from sessions')).toEqual([{ id: 'ses_new' }]);
  expect(await workshop.rows('select id from invitations')).toEqual([{ id: 'inv_new' }]);
  expect(await workshop.rows('select bucket from rate_windows')).toEqual([{ bucket: 'new' }]);
});

test('orphans are reported and left alone; volumes in tear-down are none', async () => {
  const [kept = '', going = ''] = await workshop.addVolumes(2);
  await until(
    'both are made',
    async () => (await workshop.rows(`select 1 from volumes where status = 'available'`)).length === 2,
  );
  await workshop.rows(`update volumes set deleted_at = now(), next_at = null where id = ?`, [going]);
  await workshop.rows(`update schedules set observed = null, next_at = now() where id = 'find_orphans'`);
  await until('it was looked', async () => (await report('find_orphans')) !== null);
  expect(await report('find_orphans')).toMatchObject({
    count: 1,
    orphans: [{ driver: 'directory', name: 'vol_orphan', owner_id: 'vol_orphan' }],
  });
  expect((await workshop.rows('select id from volumes')).length).toBe(2);
  const there = await workshop.parts.drivers.volumes.default.observe(
    { id: kept, spec: { project_id: 'prj_1', size_gb: 2 } },
    driverContext(5_000),
  );
  expect(there.state).toBe('present');
});

test('a deleted application is purged when the last domain that holds it is gone', async () => {
  const service = await startService({ worker: true });
  try {
    const { body: application } = await service.call('POST', '/v2/applications', { body: { name: 'held' } });
    const { body: domain } = await service.call('POST', `/v2/applications/${application.id}/domains`, {
      body: { hostname: 'shop.example.com' },
    });
    // Its own tear-down is kept from being noticed for a while.
    await service.sql(
      `update domains set lease_owner = 'another', lease_until = now() + interval '1 hour' where id = $1`,
      [domain.id],
    );
    expect((await service.call('DELETE', `/v2/applications/${application.id}`)).status).toBe(204);
    const row = async (): Promise<{ attempts: number } | undefined> =>
      (await service.sql('select attempts from applications where id = $1', [application.id]))[0];
    await until('it waits for the domain', async () => ((await row())?.attempts ?? 0) > 1);
    await service.sql('update domains set lease_until = now(), next_at = now() where id = $1', [domain.id]);
    await until('the row is gone', async () => (await row()) === undefined);
  } finally {
    await service.close();
  }
});

test('the folder of jobs is the registry', () => {
  const tables = allJobs().map(({ table }) => table);
  expect(tables).toEqual(expect.arrayContaining(['applications', 'schedules', 'volumes']));
});
