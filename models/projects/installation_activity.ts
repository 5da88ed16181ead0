// The activity of all projects and of the installation itself, for its operators: read by page, and exported whole.
import type { Context, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import { firstIdAt } from '../../core/ids';
import { named } from '../../db/statement';
import { newest, noteChange, type NewestArguments } from '../base/row';
import type { Page } from '../base/page';
import { containing } from '../identity/installation_user';
import { isOperator, requireOperator } from '../identity/operator';
import { sessionUser } from '../identity/user';
import { Activity } from './activity';

export interface ActivityFilter {
  since?: string | null;
  until?: string | null;
  person?: string | null;
  action?: string | null;
  project_id?: string | null;
}

interface Row {
  id: string;
  action: string;
  outcome: string;
  actor: { type: string; id: string | null; name: string };
  key_id: string | null;
  account_id: string | null;
  project_id: string | null;
  project_name: string | null;
  resource_type: string;
  resource_id: string;
  resource_name: string | null;
  changed_fields: string[];
  request_id: string | null;
  created_at: string;
}

export type InstallationActivity = Row & { project: { id: string; name: string | null } | null };

const READ = `select a.id, a.action, a.outcome, a.actor, a.key_id, a.account_id, a.project_id, p.name as project_name,
    a.resource_type, a.resource_id, a.resource_name, a.changed_fields, a.request_id, a.created_at
  from activity a left join projects p on p.id = a.project_id where true`;
// Of who is gone, and of the terminal, the entry has the name alone.
const PEOPLE = named(`select id from users where id = $1 or email ilike $2 or name ilike $2 limit 100`);
const BATCH = 1_000;

/** @throws role_not_permitted, invalid_cursor */
export async function listInstallationActivity(
  ctx: Context,
  { filter, ...args }: NewestArguments & { filter?: ActivityFilter | null },
): Promise<Page<InstallationActivity>> {
  await requireOperator(ctx);
  const { text, values } = await conditionsOf(ctx.sql, filter ?? {});
  const page = await newest<Row>(ctx, args, { text: READ + text, values, id: 'a.id', idOf: ({ id }) => id });
  return {
    ...page,
    data: page.data.map((row) => ({
      ...row,
      project: row.project_id === null ? null : { id: row.project_id, name: row.project_name },
    })),
  };
}

type Reader = Pick<Sql, 'query'>;

async function conditionsOf(
  sql: Reader,
  { since, until, person, action, project_id }: ActivityFilter,
): Promise<{ text: string; values: unknown[] }> {
  const values: unknown[] = [];
  const parts: string[] = [];
  const add = (condition: (place: string) => string, value: unknown): void =>
    void parts.push(` and ${condition(`$${values.push(value)}`)}`);
  if (since) add((place) => `a.id >= ${place}`, firstIdAt(Activity.idPrefix, since));
  if (until) add((place) => `a.id < ${place}`, firstIdAt(Activity.idPrefix, until));
  if (project_id) add((place) => `a.project_id = ${place}`, project_id);
  if (action?.endsWith('.')) add((place) => `starts_with(lower(a.action), lower(${place}))`, action);
  else if (action) add((place) => `lower(a.action) = lower(${place})`, action);
  if (person) {
    const rows = await sql.query<{ id: string }>(PEOPLE, [person, containing(person)]);
    const ids = `coalesce(a.actor_id, '') = any($${values.push([person, ...rows.map(({ id }) => id)])}::text[])`;
    add(
      (place) => `(${ids} or (coalesce(a.actor_id, '') = '' and a.actor ->> 'name' ilike ${place}))`,
      containing(person),
    );
  }
  return { text: parts.join(''), values };
}

/** Oldest first, a batch at a time: nobody holds all of it. Up to now, where the filter names no end. */
export async function* readInstallationActivity(sql: Reader, filter: ActivityFilter): AsyncGenerator<Row[]> {
  const until = filter.until ?? new Date(Date.now() + 1).toISOString();
  const { text, values } = await conditionsOf(sql, { ...filter, until });
  const [after, limit] = [`$${values.length + 1}`, `$${values.length + 2}`];
  const statement = named(`${READ}${text} and a.id > ${after} order by a.id limit ${limit}`);
  for (let last = ''; ;) {
    const rows = await sql.query<Row>(statement, [...values, last, BATCH]);
    if (rows.length) yield rows;
    if (rows.length < BATCH) return;
    last = rows.at(-1)?.id ?? last;
  }
}

/** What an export has of an entry, in this order. */
export function exportedEntry({ actor, changed_fields, ...row }: Row): Record<string, string | null | string[]> {
  return {
    time: row.created_at,
    ...{ id: row.id, action: row.action, outcome: row.outcome },
    ...{ actor_type: actor.type, actor_id: actor.id, actor_name: actor.name, key_id: row.key_id },
    ...{ account_id: row.account_id, project_id: row.project_id, project_name: row.project_name },
    ...{ resource_type: row.resource_type, resource_id: row.resource_id, resource_name: row.resource_name },
    changed_fields,
    request_id: row.request_id,
  };
}

export type ExportFormat = 'csv' | 'jsonl';

/** Below the address of the dashboard. */
export const EXPORT_PATH = '/downloads/activity/';
const EXPORT_CONTEXT = 'activity export';
const EXPORT_WITHIN_MS = 5 * 60_000;

export interface ExportOrder {
  user_id: string;
  format: ExportFormat;
  filter: ActivityFilter;
  expires_at: string;
}

/** @throws role_not_permitted */
export async function orderExport(
  ctx: Context,
  { format, filter }: { format: ExportFormat; filter?: ActivityFilter | null },
): Promise<{ url: string; expires_at: string }> {
  await requireOperator(ctx);
  const expires_at = new Date(Date.now() + EXPORT_WITHIN_MS).toISOString();
  const order: ExportOrder = { user_id: sessionUser(ctx).id, format, filter: filter ?? {}, expires_at };
  noteChange(ctx, { type: 'installation', id: 'installation', name: format });
  const sealed = ctx.secrets.seal(JSON.stringify(order), EXPORT_CONTEXT);
  return { url: `${EXPORT_PATH}${encodeURIComponent(sealed)}`, expires_at };
}

/** What an address orders. @throws not_found where it was altered or is too old, or the person is no operator now */
export async function readExportOrder(ctx: Pick<Context, 'secrets' | 'sql'>, sealed: string): Promise<ExportOrder> {
  const order = openOrder(ctx, sealed);
  const isValid = order !== null && Date.parse(order.expires_at) > Date.now();
  if (isValid && (await isOperator(ctx.sql, order.user_id))) return order;
  throw problem('not_found', 'The download address has expired or was altered. Request a new one.');
}

function openOrder({ secrets }: Pick<Context, 'secrets'>, sealed: string): ExportOrder | null {
  try {
    return JSON.parse(secrets.open(sealed, EXPORT_CONTEXT)) as ExportOrder;
  } catch {
    return null;
  }
}
