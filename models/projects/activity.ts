import type { Context, Identity, Sql } from '../../core/context';
import { firstIdAt, mintId, timeOfId } from '../../core/ids';
import type { ActorType, QueryListProjectActivityArgs } from '../../schema/types';
import { Resource } from '../base/resource';
import { sessionOf, type Values } from '../../db/table';
import { page, type Page, type PageArguments } from '../base/page';
import { allKinds } from '../base/kinds';
import { named } from '../../db/statement';
import { limits } from '../../core/limits';
import type { RevertObstacle } from '../../core/undo';
import { keepUndo } from './activity/keep_undo';

/**
 * What happened in a project: one entry per successful mutation and per platform event. Names of fields, never values.
 */
export class Activity extends Resource {
  static readonly table = 'activity';
  static readonly kind = 'activity';
  static readonly idPrefix = 'act';
  static override readonly filters = {
    action: 'action = ?',
    actor_id: 'actor_id = ?',
    resource_type: 'resource_type = ?',
    resource_id: 'resource_id = ?',
    since: 'id >= ?',
    until: 'id < ?',
  };

  declare action: string;
  declare outcome: string;
  declare actor: { type: ActorType; id: string | null; name: string };
  declare key_id: string | null;
  declare resource_type: string;
  declare resource_id: string;
  declare resource_name: string | null;
  declare changed_fields: string[];
  declare request_id: string | null;
  /** The entry that this one takes back, and the one that takes this one back. */
  declare reverts: string | null;
  declare reverted_by: string | null;
  /** As stored; `obstacle` is what holds now. */
  declare revert_obstacle: RevertObstacle | null;

  /** One page of the selected project. Times are bounds of ids, which the index has. */
  static list(ctx: Context, args: QueryListProjectActivityArgs): Promise<Page<Activity>> {
    const since = args.since && firstIdAt(Activity.idPrefix, args.since);
    const until = args.until && firstIdAt(Activity.idPrefix, args.until);
    return page(Activity, ctx, { ...args, since, until } as PageArguments);
  }

  /** Why the change cannot be taken back now, or null. */
  get obstacle(): RevertObstacle | null {
    return obstacleOf(this);
  }

  /** The resource as the answer nests it. */
  get resource(): { type: string; id: string; name: string | null } {
    return { type: this.resource_type, id: this.resource_id, name: this.resource_name };
  }
}

const DAY_MS = 24 * 3_600_000;

/** Why an entry cannot be reverted now, or null. */
export function obstacleOf(entry: {
  id: string;
  reverted_by?: string | null;
  revert_obstacle?: RevertObstacle | null;
}): RevertObstacle | null {
  if (entry.reverted_by) return 'reverted';
  if (entry.revert_obstacle) return entry.revert_obstacle;
  return Date.now() - timeOfId(entry.id).getTime() > limits.activityUndoDays * DAY_MS ? 'expired' : null;
}

const INSERT = named(`insert into activity (id, project_id, account_id, action, actor, actor_id, key_id, resource_type,
    resource_id, resource_name, changed_fields, request_id, created_at, reverts, revert_obstacle)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`);

/**
 * Writes the activity entry of a mutation into its transaction; the mutation has stored its changes in `ctx.activity`.
 */
export function recordActivity(ctx: Context, action: string): void {
  const { resource, changed_fields, person } = ctx.activity;
  const { identity } = ctx;
  if (resource && person) return insertEntry(ctx, personEntry(ctx, action, { ...ctx.activity, resource, person }));
  if (!resource || !identity) return;
  insertEntry(ctx, {
    project_id: resource.project_id ?? ctx.project?.id ?? null,
    account_id: ctx.project?.account_id ?? identity.account_id,
    action,
    actor: actorOf(identity),
    key_id: identity.kind === 'session' ? null : identity.id,
    resource,
    changed_fields,
    request_id: ctx.request_id,
  });
}

function personEntry(
  { request_id }: Context,
  action: string,
  {
    resource,
    person,
    changed_fields,
  }: Pick<Required<Context['activity']>, 'person' | 'changed_fields'> & {
    resource: { type: string; id: string; name: string | null };
  },
): Parameters<typeof insertEntry>[1] {
  const actor = { type: 'user' as const, id: person.id, name: person.name };
  const { account_id } = person;
  return { project_id: null, account_id, action, actor, key_id: null, resource, changed_fields, request_id };
}

const EVENT =
  named(`insert into activity (id, project_id, account_id, action, actor, actor_id, key_id, resource_type, resource_id,
    resource_name, created_at, changed_fields)
  select $1, p.id, p.account_id, $3, $4, $5, $6, $7, $8, $9, $10, $11::text[] from projects p where p.id = $2`);

/** Something that the platform did by itself: `volume.available`, `domain.failed`. In the transaction that did it. */
export async function recordEvent(sql: Sql, table: string, row: { id: string }, event: string): Promise<void> {
  const kind = allKinds().find((candidate) => candidate.table === table)?.kind;
  const { project_id, name, hostname } = row as { project_id?: string; name?: string; hostname?: string };
  if (!kind || !project_id) return;
  const resource = { type: kind, id: row.id, name: name ?? hostname ?? null };
  await recordProjectEvent(sql, { project_id, action: `${kind}.${event}`, actor: PLATFORM, key_id: null, resource });
}

/** The same for rows without names, all of one kind. */
export async function recordEvents(sql: Sql, table: string, rowIds: readonly string[], event: string): Promise<void> {
  const kind = allKinds().find((candidate) => candidate.table === table)?.kind;
  if (!kind || !rowIds.length) return;
  const ids = rowIds.map(() => mintId('act'));
  const text = `insert into activity (id, project_id, account_id, action, actor, actor_id, resource_type, resource_id,
      created_at)
    select e.id, p.id, p.account_id, $4, $5, $6, $7, r.id, e.created_at::timestamptz
    from unnest($1::text[], $2::text[], $3::text[]) as e(id, row_id, created_at)
    join ${table} r on r.id = e.row_id join projects p on p.id = r.project_id`;
  const times = ids.map((id) => timeOfId(id).toISOString());
  const values = [ids, rowIds, times, `${kind}.${event}`, JSON.stringify(PLATFORM), PLATFORM.id, kind];
  await sql.query(named(text), values);
}

type ProjectEvent = Pick<Activity, 'action' | 'actor' | 'key_id' | 'resource'> & {
  project_id: string;
  changed_fields?: readonly string[];
};

/** Something that did not come as a request to the API. In the transaction that did it. */
export async function recordProjectEvent(sql: Sql, event: ProjectEvent): Promise<void> {
  const { project_id, action, actor, key_id, resource, changed_fields = [] } = event;
  const id = mintId('act');
  await sql.query(EVENT, [
    ...[id, project_id, action, JSON.stringify(actor), actor.id, key_id],
    ...[resource.type, resource.id, resource.name, timeOfId(id).toISOString()],
    changed_fields,
  ]);
}

const OF_OPERATOR = named(`insert into activity (id, project_id, account_id, action, actor, resource_type, resource_id,
    resource_name, changed_fields, created_at)
  values ($1, $2, (select account_id from projects where id = $2), $3, $4, $5, $6, $7, $8, $9)`);

/** Something that an operator did at the terminal. In the transaction that did it. */
export async function recordOperatorEvent(
  sql: Pick<Sql, 'query'>,
  {
    action,
    resource,
    name,
    project_id = null,
    changed_fields = [],
  }: Pick<Activity, 'action' | 'resource'> & {
    name: string;
    project_id?: string | null;
    changed_fields?: readonly string[];
  },
): Promise<void> {
  const id = mintId('act');
  const actor = JSON.stringify({ ...PLATFORM, name });
  const about = [resource.type, resource.id, resource.name, changed_fields];
  await sql.query(OF_OPERATOR, [id, project_id, action, actor, ...about, timeOfId(id).toISOString()]);
}

/** The actor of automatic actions. */
export const PLATFORM: Activity['actor'] = { type: 'system', id: null, name: 'Platform' };

/** Refused calls of one key in one minute, summed up by code. */
export interface Refusals {
  identity: Identity;
  project: { id: string; account_id: string } | null;
  code: string;
  count: number;
}

const REFUSED =
  named(`insert into activity (id, project_id, account_id, action, outcome, actor, actor_id, key_id, resource_type,
    resource_id, resource_name, created_at)
  values ($1, $2, $3, 'request.refused', 'refused', $4, $5, $6, $7, $8, $9, $10)`);

/** One entry for refused calls; how many and why stands in the resource's name. */
export async function recordRefusals(sql: Sql, { identity, project, code, count }: Refusals): Promise<void> {
  const id = mintId('act');
  const actor = actorOf(identity);
  const [key_id, type] = identity.kind === 'session' ? [null, 'session'] : [identity.id, 'api_key'];
  const values = [
    JSON.stringify(actor),
    actor.id,
    key_id,
    type,
    identity.id,
    `${code} (${count})`,
    timeOfId(id).toISOString(),
  ];
  await sql.query(REFUSED, [id, project?.id ?? null, project?.account_id ?? identity.account_id, ...values]);
}

/** The actor of an identity, as entries and `created_by` fields show it. */
export function actorOf(identity: Identity): Activity['actor'] {
  if (identity.user) return { type: 'user', id: identity.user.id, name: identity.user.name };
  // A session without a person is the operator's command.
  if (identity.kind === 'session') return { type: 'system', id: null, name: identity.name };
  return { type: 'project_key', id: identity.id, name: identity.name };
}

function insertEntry(
  ctx: Context,
  entry: Values & { actor: Activity['actor']; resource: { type: string; id: string; name: string | null } },
): void {
  const { id = mintId('act'), reverts = null, undo } = ctx.activity;
  const created_at = timeOfId(id).toISOString();
  const project_id = (entry.project_id ?? null) as string | null;
  const obstacle = keepUndo(ctx, { id, project_id, created_at }, undo);
  sessionOf(ctx).send(INSERT, [
    id,
    entry.project_id,
    entry.account_id,
    entry.action,
    JSON.stringify(entry.actor),
    entry.actor.id,
    entry.key_id,
    entry.resource.type,
    entry.resource.id,
    entry.resource.name,
    entry.changed_fields,
    entry.request_id,
    created_at,
    reverts,
    obstacle,
  ]);
}
