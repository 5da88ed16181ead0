// Runs that enter an instance of a cluster. The process of the API that serves their client starts them, and writes how
// they fare to `observed`; the job reads it there.
import type { Sql } from '../../../core/context';
import { makeRowsDue } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

export const INSTANCE_ENDED = 'The instance ended, and with it the commands in it.';

export interface EnteredEnd {
  code: number | null;
  /** A limit for which it was ended. */
  killed: 'time' | null;
  /** A sentence for users where neither tells. */
  reason: string | null;
  /** RFC 3339. */
  at: string;
}

/** `end` null: it runs. */
export interface EnteredState {
  started_at: string;
  end: EnteredEnd | null;
}

const BEGIN = named(`update runs set observed = jsonb_build_object('entered', $2::jsonb), attached_at = now()
  where id = $1 and status = 'starting' and cancel_requested_at is null and observed -> 'entered' is null
  returning id`);

/** False where another client has begun it, or it is not to begin any more. */
export async function beginEntered(sql: Sql, runId: string): Promise<boolean> {
  const state: EnteredState = { started_at: new Date().toISOString(), end: null };
  const [begun] = await sql.query<{ id: string }>(BEGIN, [runId, JSON.stringify(state)]);
  if (begun) await wake(sql, runId);
  return begun !== undefined;
}

const END = named(`update runs set observed = jsonb_set(observed, '{entered,end}', $2::jsonb)
  where id = $1 and observed #> '{entered,end}' = 'null'::jsonb`);

/** What was written first counts. */
export async function endEntered(sql: Sql, runId: string, end: Omit<EnteredEnd, 'at'>): Promise<void> {
  await sql.query(END, [runId, JSON.stringify({ ...end, at: new Date().toISOString() })]);
  await wake(sql, runId);
}

const POD = named('select pod_uid from instances where id = $1 and deleted_at is null');

/** null where the instance has gone, or runs on this host. */
export async function podOfInstance(sql: Sql, instanceId: string): Promise<string | null> {
  return (await sql.query<{ pod_uid: string | null }>(POD, [instanceId]))[0]?.pod_uid ?? null;
}

const CANCELED = named('select 1 from runs where id = $1 and cancel_requested_at is not null');

export async function isToEnd(sql: Sql, runId: string): Promise<boolean> {
  return (await sql.query(CANCELED, [runId])).length > 0;
}

async function wake(sql: Sql, runId: string): Promise<void> {
  await makeRowsDue(sql, { table: 'runs', where: 'id = $1', values: [runId] });
}
