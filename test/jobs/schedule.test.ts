// Periodic work: what it clears away, what it keeps, and that a torn-down application goes when nothing holds it.
import { driverContext } from '../../drivers/driver';
import { job as applications } from '../../jobs/application';
import { startLoop, type Loop } from '../../jobs/loop';
import { allJobs } from '../../jobs/registry';
import { job as schedules } from '../../jobs/schedule';
import { job as volumes } from '../../jobs/volume';
import { openWorkshop, until, type Workshop } from '../support/workshop';

let workshop: Workshop;
let loop: Loop;

beforeAll(async () => {
  workshop = await openWorkshop();
  await workshop.rows(`insert into activity (id, account_id, action, actor, resource_type, resource_id, created_at)
    select 'act_' || n, 'acc_1', 'volume.created', '{}', 'volume', 'vol_1', now() - interval '80 days' - n * interval '1 day' / 100 from generate_series(1, 3500) as n`);
  await workshop.rows(`insert into idempotency_records (scope, fingerprint, created_at) values ('old', 'f', now() - interval '25 hours'), ('new', 'f', now() - interval '23 hours')`);
  await workshop.rows(`insert into users (id, account_id, email, name) values ('usr_1', 'acc_1', 'owner@example.com', 'Owner')`);
  await workshop.rows(`insert into sessions (id, hash, user_id, address, user_agent, expires_at)
    values ('ses_old', 'a', 'usr_1', '127.0.0.1', 'x', now() - interval '1 minute'), ('ses_new', 'b', 'usr_1', '127.0.0.1', 'x', now() + interval '1 minute')`);
  await workshop.rows(`insert into invitations (id, project_id, email, role, hash, invited_by, expires_at) select 'inv_' || name, (select min(id) from projects), name || '@example.com', 'viewer', name, 'usr_1', ends
    from (values ('old', now() - interval '1 minute'), ('new', now() + interval '1 minute')) as row (name, ends)`);
  await workshop.rows(`insert into rate_windows (bucket, window_start, used)
    values ('old', (extract(epoch from now()) * 1000)::bigint - 3600000, 1), ('new', (extract(epoch from now()) * 1000)::bigint, 1)`);
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
  const orphan = { id: 'vol_orphan', spec: { size_gb: 1 } };
  await driver.ensure(orphan, await driver.observe(orphan, ctx), ctx);
  loop = startLoop(workshop.parts, { pollMs: 50, jobs: [applications, schedules, volumes] });
  await until('every task has run to its end', async () => (await workshop.rows(`select 1 from schedules where observed is not null and next_at > now() + interval '5 minutes'`)).length === 7);
  expect(await workshop.rows(`select count(*)::int as old, min(created_at) > now() - interval '90 days' as kept from activity`)).toEqual([{ old: expect.any(Number), kept: true }]);
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
  await until('both are made', async () => (await workshop.rows(`select 1 from volumes where status = 'available'`)).length === 2);
  await workshop.rows(`update volumes set deleted_at = now(), next_at = null where id = ?`, [going]);
  await workshop.rows(`update schedules set observed = null, next_at = now() where id = 'find_orphans'`);
  await until('it was looked', async () => (await report('find_orphans')) !== null);
  expect(await report('find_orphans')).toMatchObject({ count: 1, orphans: [{ driver: 'directory', name: 'vol_orphan', owner_id: 'vol_orphan' }] });
  expect((await workshop.rows('select id from volumes')).length).toBe(2);
  const there = await workshop.parts.drivers.volumes.default.observe({ id: kept, spec: { size_gb: 2 } }, driverContext(5_000));
  expect(there.state).toBe('present');
});

test('a deleted application is purged when the last domain that holds it is gone', async () => {
  await workshop.rows(`insert into applications (id, project_id, name, region, application_type, default_hostname, created_at, updated_at)
    values ('app_1', 'prj_1', 'a', 'local', 'small', 'a.localhost', now(), now())`);
  await workshop.rows(`insert into domains (id, project_id, application_id, hostname, type, certificate, verification_token, created_at, updated_at)
    values ('dom_1', 'prj_1', 'app_1', 'shop.example.com', 'subdomain', '{}', 't', now(), now())`);
  await until('the loop has seen it', async () => (await workshop.row<{ next_at: Date | null }>('applications', 'app_1'))?.next_at === null);
  expect(await workshop.row('applications', 'app_1')).toMatchObject({ status: 'new', observed_generation: 0, version: 1 });
  await workshop.change('applications', 'app_1', { deleted_at: new Date() });
  await until('it waits for the domain', async () => ((await workshop.row<{ attempts: number }>('applications', 'app_1'))?.attempts ?? 0) > 1);
  await workshop.rows('delete from domains');
  await until('the row is gone', async () => (await workshop.row('applications', 'app_1')) === undefined);
});

test('the folder of jobs is the registry', () => {
  const tables = allJobs().map(({ table }) => table);
  expect(tables).toEqual(expect.arrayContaining(['applications', 'schedules', 'volumes']));
});
