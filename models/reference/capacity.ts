// Room for servers: what has been promised of the host's memory and disk, and the ports.
import { fits, type Promised } from '../../core/catalog/catalogs';
import { databasePackageDefinitions } from '../../core/catalog/catalog_definitions/databases';
import type { Context, Sql, Statement } from '../../core/context';
import { problem } from '../../core/errors';
import { allKinds } from '../base/kinds';
import { named } from '../../db/statement';

/** Reservations of all kinds. A server in tear-down still counts: its memory and disk are not free yet. */
function reservations(): Statement {
  const parts = allKinds().flatMap(({ reserves }) => reserves ?? []);
  return named(`select database_package, sum(nodes)::int as nodes, sum(storage_gb)::int as storage_gb
    from (${parts.join(' union all ')}) as reservations group by database_package`);
}

// Callers hold the project's row before this lock; the fixed order prevents deadlocks.
const LOCK = named(`select pg_advisory_xact_lock(hashtext('database capacity'))`);
const CLAIM_PORT = named(`insert into database_ports (port, owner_id)
  select min(port), $3 from generate_series($1::int, $2::int) as port
    where not exists (select 1 from database_ports d where d.port = port.port)
  having min(port) is not null returning port`);

/** What databases, replicas and volumes have been promised, whether they use it or not. */
export async function promisedCapacity(sql: Pick<Sql, 'query'>): Promise<Promised> {
  const rows = await sql.query<{ database_package: string | null; nodes: number; storage_gb: number }>(
    reservations(),
    [],
  );
  const memory = new Map(databasePackageDefinitions.map(({ id, memory_mb }) => [id, memory_mb]));
  return {
    memory_mb: rows.reduce(
      (sum, { database_package, nodes }) => sum + nodes * (memory.get(database_package ?? '') ?? 0),
      0,
    ),
    storage_gb: rows.reduce((sum, { storage_gb }) => sum + storage_gb, 0),
  };
}

/**
 * Requires that the host has the capacity. The lock is held until the end of the transaction, so no other request can
 * reserve the same capacity. Check quotas of the project first: they lock its row.
 * @param more difference to what is reserved; negative = less
 * @throws capacity_unavailable
 */
export async function requireCapacity(ctx: Context, more: Promised): Promise<void> {
  await ctx.sql.query(LOCK, []);
  if (fits(await ctx.catalogs.facts(), await promisedCapacity(ctx.sql), more)) return;
  throw noRoom();
}

function noRoom(): Error {
  return problem('capacity_unavailable', 'No host of the region has enough free capacity for the requested size.', {
    regions: [],
  });
}

/** For servers that are back already, whose disk was counted all the time. @throws capacity_unavailable */
export async function requireMemoryOfAll(ctx: Context): Promise<void> {
  await ctx.sql.query(LOCK, []);
  const { memory_mb } = await promisedCapacity(ctx.sql);
  if (!fits(await ctx.catalogs.facts(), { memory_mb: 0, storage_gb: 0 }, { memory_mb, storage_gb: 0 })) throw noRoom();
}

/**
 * A port of the range DATABASE_PORTS that is the owner's until its row is deleted. Under the lock of requireCapacity.
 * @param ownerId id of a database, a replica or an endpoint
 * @throws capacity_unavailable
 */
export async function allocatePort(ctx: Context, ownerId: string): Promise<number> {
  await ctx.sql.query(LOCK, []);
  const [from, to] = ctx.config.databasePorts;
  const [taken] = await ctx.sql.query<{ port: number }>(CLAIM_PORT, [from, to, ownerId]);
  if (!taken) throw problem('capacity_unavailable', 'All ports of `DATABASE_PORTS` are in use.', { regions: [] });
  return taken.port;
}

/** Transfers the port to another owner: the server behind it now belongs to another row. */
export async function transferPort(sql: Sql, from: string, to: string): Promise<void> {
  await sql.query(named('update database_ports set owner_id = $2 where owner_id = $1'), [from, to]);
}
