// Extensions of PostgreSQL in a database: what the host has, and rows of those that owners want. The job of the
// database brings them to the server.
import { extensionRefusal } from '../../core/catalog/postgresql_extensions';
import type { ExtensionFound, HostFacts, PostgresqlFound } from '../../core/catalog/host_facts';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';
import type { DatabaseExtension, QueryListDatabaseExtensionsArgs } from '../../schema/types';
import { listing } from '../base/listing';
import type { Page } from '../base/page';
import { noteChange } from '../base/row';
import { requireAlive, untilApplied } from './database/applied';
import { wakeDatabase } from './database/wake';
import type { ManagedDatabase } from './database';

const ALL = named('select name, status, status_reason, version from database_extensions where database_id = $1');
const OBSERVED = named("select observed -> 'extensions' as extensions from databases where id = $1");
const SET = named(`insert into database_extensions (database_id, name, status) values ($1, $2, $3)
  on conflict (database_id, name) do update set status = $3, status_reason = null`);
const PENDING = named(`select 1 from database_extensions e join databases d on d.id = e.database_id
  where e.database_id = $1 and e.name = $2 and e.status in ('enabling', 'disabling') and d.project_id = $3
    and d.running and d.status = 'available'`);
interface Row {
  name: string;
  status: 'enabling' | 'enabled' | 'disabling' | 'failed';
  status_reason: string | null;
  version: string | null;
}

/** One page of what the server can have. @throws invalid_cursor */
export async function listExtensions(
  ctx: Context,
  database: ManagedDatabase,
  { status, id, ...args }: QueryListDatabaseExtensionsArgs,
): Promise<Page<DatabaseExtension>> {
  const all = await extensionsOf(ctx, database);
  const rows = all.filter((one) => status == null || one.status === status);
  return listing(ctx, rows, args, { key: 'name', filters: { id, status } });
}

/** @throws not_found where the server does not have it */
export async function getExtension(ctx: Context, database: ManagedDatabase, name: string): Promise<DatabaseExtension> {
  const found = (await extensionsOf(ctx, database)).find((one) => one.name === name);
  if (!found) throw problem('not_found', `The server has no extension ${JSON.stringify(name)}.`);
  return found;
}

/**
 * Wants it in the database, which the caller holds.
 * @throws not_found, engine_feature_unsupported where it or what it requires is refused, invalid_state
 */
export async function enableExtension(
  ctx: Context,
  database: ManagedDatabase,
  name: string,
): Promise<DatabaseExtension> {
  const wanted = await getExtension(ctx, database, name);
  requireAlive(database);
  const refusal = await refusalOfAll(ctx, database, wanted);
  if (refusal) throw problem('engine_feature_unsupported', refusal, { engine: database.engine, feature: name });
  if (wanted.status !== 'enabled' || wanted.status_reason) await set(ctx, database, name, 'enabling');
  return getExtension(ctx, database, name);
}

/** Wants it out of the database, which the caller holds. @throws not_found, invalid_state where it is not enabled */
export async function disableExtension(
  ctx: Context,
  database: ManagedDatabase,
  name: string,
): Promise<DatabaseExtension> {
  const present = await getExtension(ctx, database, name);
  requireAlive(database);
  if (present.status === 'available' || present.status === 'refused')
    throw problem('invalid_state', `The extension ${name} is not enabled.`, {
      resource_status: present.status,
      allowed_statuses: ['enabling', 'enabled', 'failed'],
    });
  await set(ctx, database, name, 'disabling');
  return getExtension(ctx, database, name);
}

/** Waits until the server has applied the last change, for `operationWaitSeconds` at most. */
export async function extensionApplied(ctx: Context, databaseId: string, name: string): Promise<void> {
  const isPending = async (): Promise<boolean> =>
    (await ctx.sql.query(PENDING, [databaseId, name, ctx.project?.id])).length > 0;
  await untilApplied(ctx, isPending);
}

async function set(
  ctx: Context,
  { id, name: database }: ManagedDatabase,
  name: string,
  status: Row['status'],
): Promise<void> {
  await ctx.sql.query(SET, [id, name, status]);
  noteChange(ctx, { type: 'database', id, name: database }, ['extensions']);
  await wakeDatabase(ctx.sql, id);
}

async function extensionsOf(ctx: Context, database: ManagedDatabase): Promise<DatabaseExtension[]> {
  const found = await installedFor(ctx, database);
  const rows = new Map((await ctx.sql.query<Row>(ALL, [database.id])).map((row) => [row.name, row]));
  return found.map(({ name, version, description, requires, is_trusted }) => {
    const row = rows.get(name);
    const refusal = extensionRefusal(name, is_trusted);
    return {
      ...{ name, version, description, requires, is_trusted, installed_version: row?.version ?? null },
      status: row?.status ?? (refusal === null ? 'available' : 'refused'),
      status_reason: row ? row.status_reason : refusal,
    };
  });
}

/** Without the language that every database has. In the cluster, the server itself says what its image has. */
async function installedFor(
  ctx: Context,
  { id, engine, engine_version, on_cluster }: ManagedDatabase,
): Promise<ExtensionFound[]> {
  if (engine !== 'postgresql') return [];
  const found = on_cluster
    ? (await ctx.sql.query<{ extensions: ExtensionFound[] | null }>(OBSERVED, [id]))[0]?.extensions
    : foundOnHost(await ctx.catalogs.facts(), engine_version);
  return (found ?? []).filter(({ name }) => name !== 'plpgsql');
}

/** Of a version that new databases have in the cluster, the host may have its own. */
function foundOnHost({ postgresql }: HostFacts, version: string): ExtensionFound[] | undefined {
  const found = postgresql.find(({ series }) => series === version);
  return ((found?.onHost as PostgresqlFound | undefined) ?? found)?.extensions;
}

/** The first refusal among it and what is created with it. */
async function refusalOfAll(
  ctx: Context,
  database: ManagedDatabase,
  wanted: Pick<DatabaseExtension, 'name'>,
): Promise<string | null> {
  const found = new Map((await installedFor(ctx, database)).map((one) => [one.name, one]));
  const names = [wanted.name];
  for (const name of names) {
    if (name === 'plpgsql') continue;
    const one = found.get(name);
    if (!one) return `It requires ${name}, which this host does not have.`;
    const refusal = extensionRefusal(name, one.is_trusted);
    if (refusal) return name === wanted.name ? refusal : `It requires ${name}. ${refusal}`;
    names.push(...one.requires.filter((required) => !names.includes(required)));
  }
  return null;
}
