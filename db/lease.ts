// The SQL of the reconcile loop: rows are claimed under a lease and a fence, and written back only by their holder.
// All times are the database's, so that workers with different clocks agree.
import type { StateMachine } from '../core/states';
import type { Values } from './table';
import { LOOP_ONLY } from './columns';
import type { Session } from './control_database';
import { named } from './statement';

/** Common columns of the loop's rows; kinds have more. `status` is missing if the kind has no states. */
export interface LoopRow {
  id: string;
  status?: string;
  status_reason?: string | null;
  driver: string | null;
  ref: unknown;
  observed: unknown;
  generation: number;
  attempts: number;
  last_error?: string | null;
  fence: number;
  deleted_at: string | null;
}

/** The exclusive right to work on a row. A later claim invalidates it by raising `fence`. */
interface Lease {
  readonly table: string;
  readonly id: string;
  readonly owner: string;
  readonly fence: number;
  /** Generation of the row when it was claimed. Writes of the API raise it. */
  readonly generation: number;
}

export interface Claim {
  lease: Lease;
  /** Whose row it is; '' for one of the platform itself. */
  account: string;
  row: LoopRow;
  /** Time until a failure makes the row failed; negative once it is over. */
  deadlineInMs: number;
}

interface ClaimOptions {
  owner: string;
  leaseMs: number;
  deadlineMs: number;
  /** Drivers whose rows are left alone for now; '' stands for rows that have none yet. */
  avoid: readonly string[];
  /** SQL of a row's project. Default: its `project_id`; rows of a table without one are of the platform itself. */
  project?: string | undefined;
  /** Accounts whose rows are not claimed; '' stands for the platform. */
  passOver?: readonly string[];
}

/**
 * Outcome of a step: `done` = as desired, `going` = another step follows, `failed` = to be retried, `waiting` = the
 * same with all of its time, `gave_up` = final.
 */
type Ending = 'done' | 'going' | 'failed' | 'waiting' | 'gave_up';

export interface WriteBack {
  ending: Ending;
  /** Columns of the row. status and status_reason are dropped when the row was changed meanwhile. */
  columns: Values;
  /** Milliseconds until the next step; null = when the row is changed. */
  nextMs: number | null;
  error: string | null;
}

const DUE = 'next_at <= now() and (lease_until is null or lease_until < now())';
const HELD = 'id = $1 and lease_owner = $2 and fence = $3';

/** The subset of tables with a row that is due and not leased. */
export async function dueTables(sql: Session, tables: readonly string[]): Promise<string[]> {
  const parts = tables.map((table) => `select '${table}' as name where exists (select 1 from ${table} where ${DUE})`);
  return (await sql.query<{ name: string }>(named(parts.join(' union all ')), [])).map(({ name }) => name);
}

/** Seconds since the longest waiting row became due; 0 when none waits. */
export async function lagSeconds(sql: Session, tables: readonly string[]): Promise<number> {
  const parts = tables.map((table) => `select min(next_at) as due from ${table} where ${DUE}`);
  const text = `select coalesce(extract(epoch from now() - min(due)), 0)::float8 as lag
    from (${parts.join(' union all ')}) as waiting`;
  const [row] = await sql.query<{ lag: number }>(named(text), []);
  return Math.max(0, row?.lag ?? 0);
}

/**
 * Takes the row of the table that is due for longest, or null where there is none. The deadline runs from the first
 * attempt. A row whose worker died gets its whole time again: it is not the row's fault.
 */
export async function claimRow(sql: Session, table: string, options: ClaimOptions): Promise<Claim | null> {
  const { owner, leaseMs, deadlineMs, avoid, passOver = [] } = options;
  const hasProject = sql.tables.get(table)?.columns.includes('project_id');
  const project = options.project ?? (hasProject ? `${table}.project_id` : null);
  if (!project && passOver.includes('')) return null;
  const isOther = project && passOver.length ? `and ${project} not in (${PROJECTS_OF} any($5))` : '';
  const account = project ? `(select account_id from projects p where p.id = ${project})` : 'null';
  const text = `update ${table} set lease_owner = $1, lease_until = now() + $2 * interval '1 ms', fence = fence + 1,
      deadline_at = case when deadline_at is null or lease_until is not null then now() + $3 * interval '1 ms' else
        deadline_at end
    where id = (select id from ${table} where ${DUE} and coalesce(driver, '') <> all($4) ${isOther}
      order by next_at limit 1 for update skip locked)
    returning *, (extract(epoch from deadline_at - now()) * 1000)::float8 as deadline_in_ms, ${account} as claimed_for`;
  const values = [owner, leaseMs, deadlineMs, avoid, ...(isOther ? [passOver] : [])];
  const [found] = await sql.query<LoopRow & { deadline_in_ms: number; claimed_for: string | null }>(
    named(text),
    values,
  );
  if (!found) return null;
  const { deadline_in_ms: deadlineInMs, claimed_for, ...row } = found;
  const lease = { table, id: row.id, owner, fence: row.fence, generation: row.generation };
  return { row, deadlineInMs, account: claimed_for ?? '', lease };
}

const PROJECTS_OF = 'select p.id from projects p where p.account_id =';

/** Extends the leases on rows of one table. Returns the fences of those still held, by id. */
export async function renewLeases(
  sql: Session,
  table: string,
  owner: string,
  ids: readonly string[],
  leaseMs: number,
): Promise<Map<string, number>> {
  const text = `update ${table} set lease_until = now() + $3 * interval '1 ms'
    where lease_owner = $1 and id = any($2) returning id, fence`;
  const rows = await sql.query<{ id: string; fence: number }>(named(text), [owner, ids, leaseMs]);
  return new Map(rows.map(({ id, fence }) => [id, fence]));
}

/** Writes columns of a row that is still held. Returns false when it is not. */
export async function recordColumns(sql: Session, lease: Lease, columns: Values): Promise<boolean> {
  const values: unknown[] = [lease.id, lease.owner, lease.fence];
  const sets = assignments(sql, lease, columns, values, null);
  const text = `update ${lease.table} set ${sets.join(', ')} where ${HELD} returning id`;
  return (await sql.query(named(text), values)).length > 0;
}

/**
 * Ends a step: writes its results and releases the lease. A row that was changed meanwhile keeps its status and is due
 * at once; a status is written only if the kind's state machine allows the transition.
 * @returns null when the lease was lost and nothing was written, else whether the row was changed meanwhile and its
 * current status
 */
export async function settleRow(
  sql: Session,
  lease: Lease,
  write: WriteBack,
  states: StateMachine | null,
): Promise<{ changed: boolean; status: string | null } | null> {
  const values: unknown[] = [lease.id, lease.owner, lease.fence, lease.generation, write.nextMs, write.error];
  const sets = [
    'lease_owner = null',
    'lease_until = null',
    'last_error = $6',
    `next_at = case when generation = $4 then now() + $5::float8 * interval '1 ms' else now() end`,
    `attempts = case when generation = $4 then ${ATTEMPTS[write.ending]} else attempts end`,
    `deadline_at = case when generation = $4 then ${DEADLINE[write.ending]} else deadline_at end`,
    ...assignments(sql, lease, write.columns, values, states),
  ];
  const status = sql.tables.get(lease.table)?.columns.includes('status') ? 'status' : 'null as status';
  const text = `update ${lease.table} set ${sets.join(', ')} where ${HELD}
    returning generation <> $4 as changed, ${status}`;
  const [row] = await sql.query<{ changed: boolean; status: string | null }>(named(text), values);
  return row ?? null;
}

/** Releases the lease without other changes: the row is due at once for every worker. */
export async function releaseRow(sql: Session, lease: Lease): Promise<void> {
  const text = `update ${lease.table} set lease_owner = null, lease_until = null where ${HELD}`;
  await sql.query(named(text), [lease.id, lease.owner, lease.fence]);
}

/**
 * Releases all leases of a table that a single process works on, at the start of that process: their holders have died.
 * If one is still alive, its writes are void.
 */
export async function releaseAllLeases(sql: Pick<Session, 'query'>, table: string): Promise<void> {
  await sql.query(
    named(`update ${table} set lease_owner = null, lease_until = null where lease_owner is not null`),
    [],
  );
}

/** Deletes a row at the end of its tear-down. Returns false when it is no longer held. */
export async function purgeRow(sql: Session, lease: Lease): Promise<boolean> {
  const text = `delete from ${lease.table} where ${HELD} and deleted_at is not null returning id`;
  return (await sql.query(named(text), [lease.id, lease.owner, lease.fence])).length > 0;
}

// A row that was given up is marked by a deadline that is over; the next change of the row clears it.
const ATTEMPTS: Record<Ending, string> = {
  done: '0',
  going: 'attempts',
  failed: 'attempts + 1',
  waiting: 'attempts',
  gave_up: 'attempts + 1',
};
const DEADLINE: Record<Ending, string> = {
  done: 'null',
  going: 'deadline_at',
  failed: 'deadline_at',
  waiting: 'null',
  gave_up: 'least(deadline_at, now())',
};

const STATUS = new Set(['status', 'status_reason']);

/** SET terms; what an answer shows raises observed_generation when it differs, and so the ETag. */
function assignments(
  sql: Session,
  lease: Lease,
  columns: Values,
  values: unknown[],
  states: StateMachine | null,
): string[] {
  const info = sql.tables.get(lease.table);
  const names = Object.keys(columns)
    .filter((name) => columns[name] !== undefined)
    .sort();
  const guard = names.some((name) => STATUS.has(name)) ? statusGuard(lease, columns, values, states) : '';
  const terms = names.map((name) => {
    const value = columns[name];
    const place = `$${values.push(info?.json.has(name) && value !== null ? JSON.stringify(value) : value)}`;
    return { name, term: STATUS.has(name) ? `case when ${guard} then ${place} else ${name} end` : place };
  });
  const shown = terms.filter(({ name }) => !LOOP_ONLY.has(name));
  const sets = terms.map(({ name, term }) => `${name} = ${term}`);
  if (!shown.length) return sets;
  const differs = shown.map(({ name, term }) => `${name} is distinct from ${term}`).join(' or ');
  return [...sets, `observed_generation = observed_generation + case when ${differs} then 1 else 0 end`];
}

function statusGuard(lease: Lease, columns: Values, values: unknown[], states: StateMachine | null): string {
  const generation = `generation = $${values.push(lease.generation)}`;
  const to = columns.status as string | undefined;
  if (!states || to === undefined) return generation;
  return `${generation} and status = any($${values.push([to, ...states.predecessors(to)])})`;
}
