// Many schedules that are due in the same second, made as rows: applications that are deployed, ten schedules each.
import { startLoop, type Loop } from '../../../jobs/loop';
import { job as scheduleJob } from '../../../jobs/runs/schedule';
import { deployed } from '../deployments/deployed';
import type { TestService } from '../service';
import { newSchedule } from './schedules';

export const SCHEDULES_PER_APPLICATION = 10;
/** Settings of a service whose quotas keep none of them from its run. */
export const WITHOUT_QUOTAS = { QUOTAS: '{"applications": null, "runs": null, "schedules": null}' };

/** The loop with the job of schedules alone: their runs stay queued. */
export function startScheduleWorker({ platform }: Pick<TestService, 'platform'>): Loop {
  const { database, config, secrets, probes, log } = platform;
  const parts = { database, config, secrets, probes, log, listen: () => ({ close: async () => {} }) };
  return startLoop({ ...parts, drivers: {} as never }, { jobs: [scheduleJob], pollMs: 100 });
}

/** The id of the n-th copy of a row, as SQL. */
const copyOf = (id: string): string => `left(${id}, 26) || lpad(n::text, 4, '0')`;

/** Copies one application that is deployed, and its schedule, as rows. */
export async function makeManySchedules(service: TestService, applications: number): Promise<void> {
  const made = await service.call('POST', '/v2/applications', { body: { name: 'pattern' } });
  const pattern = await deployed(service, made.body.id);
  const { id } = await newSchedule(service, pattern.id, { cron: '0 0 29 2 *' });
  const copy = async (table: string, where: string, changes: string, from: string): Promise<unknown> =>
    service.sql(
      `insert into ${table} select (jsonb_populate_record(r, ${changes})).* from ${table} r, ${from} where ${where}`,
    );
  await copy(
    'applications',
    `r.id = '${pattern.id}'`,
    `jsonb_build_object('id', ${copyOf('r.id')}, 'name', 'copy-' || n, 'tenant', r.tenant + 1000 + n,
      'default_hostname', n || '.' || r.default_hostname)`,
    `generate_series(1, ${applications}) n`,
  );
  await copy(
    'processes',
    `r.application_id = '${pattern.id}'`,
    `jsonb_build_object('id', ${copyOf('r.id')}, 'application_id', ${copyOf('r.application_id')})`,
    `generate_series(1, ${applications}) n`,
  );
  await copy(
    'cron_schedules',
    `r.id = '${id}'`,
    `jsonb_build_object('id', left(r.id, 24) || lpad(n::text, 4, '0') || lpad(m::text, 2, '0'),
      'application_id', ${copyOf('r.application_id')}, 'name', 's' || m,
      'next_run_at', now() - interval '1 second', 'next_at', now())`,
    `generate_series(1, ${applications}) n, generate_series(1, ${SCHEDULES_PER_APPLICATION}) m`,
  );
}

/** Due times that were decided. */
export async function decidedCount(service: Pick<TestService, 'sql'>): Promise<number> {
  const [row] = await service.sql<{ done: number }>('select count(*)::int as done from schedule_firings');
  return row?.done ?? 0;
}
