// Backups by the hour: which databases are due, when they end, and what stays of a database that is deleted.
import { expireBackups, scheduleBackups } from '../../models/databases/database_backup/job_queries';
import { database, describeHost } from '../support/databases/databases';
import { startService, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
  await describeHost(service);
});
afterAll(() => service?.close());

const HOUR = new Date().getUTCHours();
const backups = (id: string): Promise<{ type: string; status: string; days: number }[]> =>
  service.sql(
    `select type, status, round(extract(epoch from expires_at - created_at) / 86400)::int as days
      from database_backups where database_id = $1 and deleted_at is null`,
    [id],
  );
const age = (id: string, interval: string): Promise<unknown> =>
  service.sql(`update databases set created_at = now() - $2::interval where id = $1`, [id, interval]);
const schedule = (): Promise<number> => scheduleBackups(service.platform.database, 100);

async function aged(body: object, interval: string, status = 'available'): Promise<string> {
  const { id } = await database(service, body as Record<string, unknown>, status);
  await age(id, interval);
  return id;
}

test('a database has its first backup soon, and one a day at its hour', async () => {
  const hour = { backup_schedule: { hour_utc: HOUR, retention_days: 3 } };
  const young = await aged(hour, '1 minute');
  const fresh = await aged({ backup_schedule: { hour_utc: (HOUR + 2) % 24 } }, '20 minutes');
  const old = await aged(hour, '3 days');
  expect(await schedule()).toBe(2);
  expect(await backups(young)).toEqual([]);
  expect(await backups(fresh)).toEqual([{ type: 'scheduled', status: 'pending', days: 7 }]);
  expect(await backups(old)).toEqual([{ type: 'scheduled', status: 'pending', days: 3 }]);

  await service.sql(`update database_backups set status = 'completed'`);
  expect(await schedule()).toBe(0);
  // A day later.
  await service.sql(`update database_backups set created_at = created_at - interval '1 day' where database_id = $1`, [
    old,
  ]);
  expect(await schedule()).toBe(1);
  expect(await backups(old)).toHaveLength(2);
});

test('a database has one soon after an upgrade, once', async () => {
  const id = await aged({ engine_version: '16', backup_schedule: { hour_utc: (HOUR + 2) % 24 } }, '3 days');
  expect(await schedule()).toBe(1);
  await service.sql(`update database_backups set status = 'completed'`);
  expect(await schedule()).toBe(0);
  await service.sql(`update databases set engine_version = '17' where id = $1`, [id]);
  expect(await schedule()).toBe(1);
  // One that fails is not asked for again and again.
  await service.sql(`update database_backups set status = 'failed' where status = 'pending'`);
  expect(await schedule()).toBe(0);
  expect(await backups(id)).toHaveLength(2);
});

test('none is taken of databases that do not run, that are deleted, or that want none', async () => {
  const hour = { hour_utc: HOUR };
  const ids = [
    await aged({ backup_schedule: hour }, '3 days', 'stopped'),
    await aged({ backup_schedule: hour }, '3 days', 'failed'),
    await aged({ backup_schedule: { ...hour, enabled: false } }, '3 days'),
    await aged({ backup_schedule: hour }, '3 days'),
  ];
  expect((await service.call('DELETE', `/v2/databases/${ids[3]}`)).status).toBe(204);
  expect(await schedule()).toBe(0);
  for (const id of ids) expect(await backups(id)).toEqual([]);
});

test('a backup goes with its time, one that is taken right now does not', async () => {
  const id = await aged({ backup_schedule: { hour_utc: HOUR } }, '3 days');
  await schedule();
  await service.sql(`update database_backups set expires_at = now() - interval '1 second' where database_id = $1`, [
    id,
  ]);
  expect(await expireBackups(service.platform.database, 100)).toBe(0);
  await service.sql(`update database_backups set status = 'completed' where database_id = $1`, [id]);
  expect(await expireBackups(service.platform.database, 100)).toBe(1);
  expect(await backups(id)).toEqual([]);
});
