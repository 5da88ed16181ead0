// What exists of a project, as a file of it can say (docs/decisions/0253).
import {
  applicationTypeRows,
  databaseEngineRows,
  databasePackageRows,
  monthlyPrice,
  prices,
  type ApplicationTypeRow,
  type DatabaseEngineRow,
  type DatabasePackageRow,
} from '../../core/catalog/catalogs';
import type { Context } from '../../core/context';
import { named } from '../../db/statement';
import { columnsOf, tableOf } from '../../db/table';
import { settingsOf } from '../applications/application_settings';
import type { Application } from '../applications/application';
import { kindNamed } from '../base/kinds';
import type { Resource } from '../base/resource';
import { hasOwnPorts } from '../reference/region';
import type { EnvironmentVariable } from '../environment/environment_variable';

/** A resource with the fields that operations of its kind take. */
export interface StackRow extends Record<string, unknown> {
  id: string;
  version: number;
}

const TABLES = ['database', 'bucket', 'application', 'process', 'volume', 'database_attachment'];
const CHILDREN = ['environment_variable', 'schedule', 'domain'];
const LOCK = named(`select pg_advisory_xact_lock(hashtext('stack'), hashtext($1))`);
// Attachments over another endpoint, or as another user, cannot be said in a file.
const SPECIAL = named(`select a.id from database_attachments a join database_endpoints e on e.id = a.endpoint_id
    join database_users u on u.id = a.user_id where a.project_id = $1 and not (e.is_default and u.is_default)`);
const UNITS = named(`select coalesce(p.application_type, a.application_type) as price_id, sum(p.instances)::int as units
    from processes p join applications a on a.id = p.application_id
    where p.project_id = $1 and a.deleted_at is null group by 1
  union all select database_package, sum(nodes)::int from databases
    where project_id = $1 and deleted_at is null group by 1
  union all select database_package, sum(nodes)::int from database_replicas
    where project_id = $1 and deleted_at is null group by 1
  union all select 'volume_gb', sum(size_gb)::int from volumes
    where project_id = $1 and deleted_at is null group by 1`);

/** Whether the caller may read values of variables: as listEnvironmentVariables decides. */
export function mayReadValues({ identity, project }: Context): boolean {
  return project?.role !== 'viewer' && (identity?.scopes?.includes('env:read') ?? true);
}

/** All of a kind in the selected project, oldest first. Values of variables only for those who may read them. */
export async function stackRows(ctx: Context, type: string): Promise<StackRow[]> {
  if (type === 'application_settings') {
    const applications = (await load(ctx, 'application', '')) as unknown as Application[];
    return applications.map((one) => ({
      ...settingsOf(one),
      ...{ id: one.id, version: 0, application_id: one.id, stored: one.settings },
    }));
  }
  const rows = (await load(ctx, type, '')) as unknown as StackRow[];
  if (type === 'database_attachment') return withSpecial(ctx, rows);
  if (type !== 'environment_variable') return rows;
  const isReadable = mayReadValues(ctx);
  return rows.map((row) => ({
    ...row,
    value: isReadable ? (row as unknown as EnvironmentVariable).reveal(ctx) : undefined,
  }));
}

/** Waits for other applies of the project, and holds what exists against changes until the end of the transaction. */
export async function lockStack(ctx: Context): Promise<void> {
  await ctx.sql.query(LOCK, [ctx.project?.id]);
  for (const type of [...TABLES, ...CHILDREN]) await load(ctx, type, 'for no key update');
}

/** What the project costs in a month of 730 hours, at the prices of the catalogs: a decimal number. */
export async function monthlyPriceOf(ctx: Context): Promise<string> {
  const rows = await ctx.sql.query<{ price_id: string; units: number }>(UNITS, [ctx.project?.id]);
  const cents = rows.reduce((sum, { price_id, units }) => {
    const hourly = price_id === 'volume_gb' ? prices.volume_gb_hourly : prices.hourly[price_id];
    return sum + BigInt(units) * ten8(hourly ?? '0');
  }, 0n);
  return monthlyPrice(`${cents / SCALE}.${String(cents % SCALE).padStart(8, '0')}`);
}

/** What files of other platforms can become here. */
export async function importCatalog(ctx: Context): Promise<{
  applicationTypes: ApplicationTypeRow[];
  engines: DatabaseEngineRow[];
  packages: DatabasePackageRow[];
  hasOwnPorts: boolean;
}> {
  const facts = await ctx.catalogs.facts();
  return {
    applicationTypes: applicationTypeRows(facts, ctx.config.regionId).filter(({ available }) => available),
    engines: databaseEngineRows(facts),
    packages: databasePackageRows(facts),
    hasOwnPorts: (await hasOwnPorts(ctx)) !== false,
  };
}

const SCALE = 100_000_000n;

function ten8(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.');
  return BigInt(whole + fraction.padEnd(8, '0').slice(0, 8));
}

async function load(ctx: Context, name: string, lock: '' | 'for no key update'): Promise<Resource[]> {
  const kind = kindNamed(name);
  const info = tableOf(ctx, kind.table);
  // Databases of previews come and go with them.
  const own = ['deleted_at', 'preview_id'].filter((column) => info.columns.includes(column));
  const alive = own.map((column) => `and ${column} is null`).join(' ');
  const text = `select ${columnsOf(info)} from ${kind.table} where project_id = $1 ${alive} order by id ${lock}`;
  return ctx.sql.query<Resource>(named(text, { makes: kind }), [ctx.project?.id]);
}

async function withSpecial(ctx: Context, rows: readonly StackRow[]): Promise<StackRow[]> {
  const special = new Set((await ctx.sql.query<{ id: string }>(SPECIAL, [ctx.project?.id])).map(({ id }) => id));
  return rows.map((row) => ({ ...row, is_special: special.has(row.id) }));
}
