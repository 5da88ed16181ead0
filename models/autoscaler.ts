// What the autoscaler reads and writes: the measures of all process types that it is responsible for, in one query.
import { recordEvent } from './activity';
import { wakeApplication } from './application/wake';
import type { Session } from '../db/control_database';
import { Process } from './process';
import { decide, type AutoscalerState, type Decision } from './process/autoscale';
import type { Autoscaling } from './process/scale';
import { named } from '../db/statement';

interface Scaled {
  id: string;
  project_id: string;
  application_id: string;
  type: string;
  version: number;
  instances: number;
  autoscaling: Autoscaling;
  autoscaler: AutoscalerState | null;
  /** Means over its running instances, relative to what one instance may take; null where nothing was measured. */
  cpu: number | null;
  memory: number | null;
  /** Of all instances together. */
  requests_per_second: number | null;
}

/** How many process types one look took in, and which of them it changed. */
export interface AutoscalerRun {
  checked: number;
  changed: { id: string; from: number; to: number }[];
}

// Where nothing was measured lately the sampler is away: no number at all, rather than an old one or zero.
const RECENT = `m.resource_id = p.application_id and m.part_id = p.id
  and m.at >= date_trunc('minute', now()) - interval '1 minute'`;
const meanOf = (metric: string): string =>
  `(select m.total / nullif(m.samples, 0) from metric_points m where ${RECENT} and m.metric = '${metric}'
    order by m.at desc limit 1)`;
// A minute that is not over has not all of its requests; one that was measured and has none had none.
const REQUESTS = `(select case when bool_or(m.metric = 'instances')
    then coalesce(sum(m.total) filter (where m.metric = 'requests'), 0) / 60 end
  from metric_points m where ${RECENT} and m.at < date_trunc('minute', now())
    and m.metric in ('instances', 'requests'))`;

// Only where instances run as they should: while a deployment, a start or a scale is on its way, measures say little.
// What an instance may take stands in its release.
const LOOK =
  named(`select p.id, p.project_id, p.application_id, p.type, p.version, p.instances, p.autoscaling, p.autoscaler,
    (${meanOf('cpu_percent')} / nullif((r.processes -> p.type ->> 'cpus')::float8, 0))::float8 as cpu,
    (100 * ${meanOf('memory_mb')} / nullif((r.processes -> p.type ->> 'memory_mb')::float8, 0))::float8 as memory,
    (${REQUESTS})::float8 as requests_per_second
  from processes p
  join applications a on a.id = p.application_id and a.status = 'running' and a.deleted_at is null
  join releases r on r.id = p.release_id
  where p.autoscaling is not null and p.status = 'running' and p.instances > 0
  order by p.id`);

// A request that changed the process type meanwhile has the last word.
const KEEP = named(`update processes p set autoscaler = seen.state from unnest($1::text[], $2::bigint[],
    $3::jsonb[]) as seen (id, version, state)
  where p.id = seen.id and p.version = seen.version`);
const LOCK = named('select id from applications where id = $1 and deleted_at is null for no key update');
const SCALE = named(`update processes set instances = $3, autoscaler = $4, status = 'scaling', version = version + 1,
    updated_at = greatest(now(), updated_at)
  where id = $1 and version = $2 and autoscaling is not null returning id`);

/** Looks at every process type with autoscaling and changes the number of its instances where that is due. */
export async function autoscale(sql: Session, now = new Date()): Promise<AutoscalerRun> {
  const rows = await sql.query<Scaled>(LOOK, []);
  const decided = rows.map((row) => ({
    row,
    decision: decide(row.autoscaling, row.autoscaler, { instances: row.instances, value: valueOf(row), now }),
  }));
  const same = decided.filter(({ row, decision }) => decision.instances === row.instances);
  if (same.length)
    await sql.query(KEEP, [
      same.map(({ row }) => row.id),
      same.map(({ row }) => row.version),
      same.map(({ decision }) => JSON.stringify(decision.state)),
    ]);
  const changed: AutoscalerRun['changed'] = [];
  for (const { row, decision } of decided) {
    if (decision.instances === row.instances || !(await change(sql, row, decision))) continue;
    changed.push({ id: row.id, from: row.instances, to: decision.instances });
  }
  return { checked: rows.length, changed };
}

function valueOf({ autoscaling, instances, cpu, memory, requests_per_second }: Scaled): number | null {
  if (autoscaling.metric === 'cpu') return cpu;
  if (autoscaling.metric === 'memory') return memory;
  return requests_per_second === null ? null : requests_per_second / instances;
}

// The application is locked first, as requests do.
function change(sql: Session, row: Scaled, { instances, state }: Decision): Promise<boolean> {
  return sql.transaction(async (session) => {
    const [held] = await session.query(LOCK, [row.application_id]);
    const [written] = held ? await session.query(SCALE, [row.id, row.version, instances, JSON.stringify(state)]) : [];
    if (!written) return false;
    await wakeApplication(session, row.application_id);
    const event = { id: row.id, project_id: row.project_id, name: row.type };
    await recordEvent(session, Process.table, event, 'autoscaled');
    return true;
  });
}
