// Schedules of an application, as requests and rows. Due times are written into rows: no clock is moved.
import { fireSchedule } from '../../../models/runs/schedule/fire';
import type { TestService } from '../service';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
export type Body = any;

let serial = 0;

export interface Firing {
  outcome: string;
  reason: string | null;
  run_id: string | null;
  missed_count: number;
}

/** Creates a schedule of every night at two. */
export async function newSchedule(service: TestService, application: string, more: object = {}): Promise<Body> {
  const body = { name: `schedule-${(serial += 1)}`, cron: '0 2 * * *', command: 'true', ...more };
  const made = await service.call('POST', `/v2/applications/${application}/schedules`, { body });
  if (made.status !== 201) throw new Error(`${made.status} ${made.text}`);
  return made.body;
}

/** Makes a schedule due, `ago` being an interval of PostgreSQL. A step that is running looks at it again. */
export async function makeDue(service: Pick<TestService, 'sql'>, id: string, ago = '1 second'): Promise<void> {
  await service.sql(
    `update cron_schedules set next_run_at = now() - $2::interval, next_at = now(), generation = generation + 1
      where id = $1`,
    [id, ago],
  );
}

/** One decision, as the loop makes it. */
export function fire({ platform: { database, config } }: TestService, id: string): Promise<number | null> {
  return fireSchedule({ sql: database, config }, id);
}

export async function fireNow(service: TestService, id: string, ago?: string): Promise<void> {
  await makeDue(service, id, ago);
  await fire(service, id);
}

/** What became of the due times of a schedule, oldest first. */
export function firings(service: Pick<TestService, 'sql'>, id: string): Promise<Firing[]> {
  return service.sql(
    'select outcome, reason, run_id, missed_count from schedule_firings where schedule_id = $1 order by due_at',
    [id],
  );
}
