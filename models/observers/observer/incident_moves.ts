// Start, reminders and end of incidents, each in the transaction of the observer's change of status.
import type { MetricRule } from '../../../core/protocols/checks';
import type { Sql } from '../../../core/context';
import { mintId, timeOfId } from '../../../core/ids';
import type { IncidentMessage } from '../../../core/notifications';
import { named } from '../../../db/statement';
import { queueIncidentMessage } from '../notification/outbox';
import type { StoredUptime } from './fields';
import type { IncidentStatus } from '../../../schema/types';

/** What messages say of an observer. */
export interface Alerting {
  id: string;
  project_id: string;
  name: string;
  type: string;
  uptime: Pick<StoredUptime, 'target'> | null;
  metric: MetricRule | null;
  notifier_ids: readonly string[];
  reminder_minutes: number | null;
  open_incident_id: string | null;
  last_result: { error?: string | null } | null;
}

const OPEN = named(`insert into incidents (id, project_id, observer_id, status, cause, started_at, remind_at)
  values ($1, $2, $3, 'open', $4, $5, now() + $6::int * interval '1 minute')`);
const RESOLVE = named(
  `update incidents set status = 'resolved', resolved_at = greatest($2, started_at), remind_at = null
    where id = $1 and status = 'open' returning *`,
);

interface Row {
  id: string;
  status: IncidentStatus;
  cause: string;
  started_at: string;
  resolved_at: string | null;
}

/** Answers the id of the incident. */
export async function openIncident(sql: Sql, observer: Alerting, cause: string): Promise<string> {
  const id = mintId('inc');
  const started_at = timeOfId(id).toISOString();
  await sql.query(OPEN, [id, observer.project_id, observer.id, cause, started_at, observer.reminder_minutes]);
  const row: Row = { id, status: 'open', cause, started_at, resolved_at: null };
  await queueIncidentMessage(sql, 'observer.alerting', observer, messageOf(observer, row, cause, null));
  return id;
}

/** @param note why, where no check has passed */
export async function resolveIncident(sql: Sql, observer: Alerting, at: Date, note: string | null): Promise<void> {
  const [row] = await sql.query<Row>(RESOLVE, [observer.open_incident_id, at.toISOString()]);
  if (!row) return;
  await queueIncidentMessage(sql, 'observer.resolved', observer, messageOf(observer, row, null, note));
}

const REMIND = named(`with due as (select i.id from incidents i where i.remind_at <= now()
    order by i.remind_at limit $1 for update skip locked)
  update incidents i set remind_at = now() + o.reminder_minutes * interval '1 minute' from due, observers o
  where i.id = due.id and o.id = i.observer_id
  returning i.id, i.status, i.cause, i.started_at, i.resolved_at, o.id as observer_id, o.project_id, o.name, o.type,
    o.uptime, o.metric, o.notifier_ids, o.reminder_minutes, o.open_incident_id, o.last_result`);

/** Sends reminders of incidents that are due for one. @returns the number of reminders */
export async function remindOfIncidents(sql: Sql, batch: number): Promise<number> {
  const rows = await sql.query<Row & Omit<Alerting, 'id'> & { observer_id: string }>(REMIND, [batch]);
  for (const row of rows) {
    const observer = { ...row, id: row.observer_id };
    const message = messageOf(observer, row, row.last_result?.error ?? row.cause, null);
    if (row.status === 'open') await queueIncidentMessage(sql, 'observer.reminder', observer, message);
  }
  return rows.length;
}

function messageOf(observer: Alerting, row: Row, last_error: string | null, note: string | null): IncidentMessage {
  const { id, status, cause, started_at, resolved_at } = row;
  const ms = resolved_at ? Date.parse(resolved_at) - Date.parse(started_at) : null;
  return {
    observer: observerOf(observer),
    incident: {
      id,
      status,
      cause,
      started_at,
      resolved_at,
      duration_seconds: ms === null ? null : Math.round(ms / 1000),
    },
    last_error,
    note,
  };
}

/** What messages name. */
export function observerOf(observer: Pick<Alerting, 'id' | 'name' | 'type' | 'uptime' | 'metric'>) {
  return { id: observer.id, name: observer.name, type: observer.type, target: targetOf(observer) };
}

function targetOf({ uptime, metric }: Pick<Alerting, 'uptime' | 'metric'>): string {
  return uptime?.target ?? `${metric?.metric} of ${metric?.resource_id}`;
}
