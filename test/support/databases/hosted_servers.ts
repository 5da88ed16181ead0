// Database servers as tests call them: by a spec that carries the id of its server. `ensure` observes first, as the
// loop does.
import type { DatabaseServer, EngineDriver, ObservedServer, ServerSpec } from '../../../drivers/database';
import { openMariadb, type MariadbOptions } from '../../../drivers/database/mariadb/driver';
import { openPostgresql, type PostgresqlOptions } from '../../../drivers/database/postgresql/driver';
import { openRedis, type RedisOptions } from '../../../drivers/database/redis/driver';
import { driverContext } from '../../../core/driver';
import type { Desired, DriverContext } from '../../../core/driver';
import type { BackupMade, RestoreFrom, ServerMetrics } from '../../../drivers/hosted_server';

/** What a server is; `differs` is what `ensure` would still do. */
export type Seen = Omit<ObservedServer, 'state'> & {
  state: ObservedServer['state'] | 'absent' | 'foreign';
  differs: string | null;
};

export interface Servers extends Pick<
  EngineDriver,
  'name' | 'versions' | 'hasData' | 'removeBackup' | 'openBackup' | 'storeArchives' | 'window' | 'pooled' | 'readLog'
> {
  observe(server: DatabaseServer, ctx: DriverContext): Promise<Seen>;
  ensure(server: DatabaseServer, ctx: DriverContext): Promise<{ requeueMs?: number }>;
  remove(id: string, ctx: DriverContext): Promise<void>;
  list(ctx: DriverContext): Promise<string[]>;
  metrics(server: DatabaseServer, ctx: DriverContext): Promise<ServerMetrics>;
  backup(server: DatabaseServer, backupId: string, ctx: DriverContext): Promise<BackupMade>;
  restore(server: DatabaseServer, from: RestoreFrom, ctx: DriverContext): Promise<void>;
  upgrade(server: DatabaseServer, fromVersion: string, ctx: DriverContext): Promise<void>;
  promote(server: DatabaseServer, ctx: DriverContext): Promise<void>;
}

function serversOf(driver: EngineDriver): Servers {
  const { name, versions, hasData, removeBackup, openBackup, storeArchives, window, pooled, readLog } = driver;
  return {
    ...{ name, versions, hasData, removeBackup, openBackup, storeArchives, window, pooled, readLog },
    observe: (server, ctx) => observe(driver, server, ctx),
    ensure: async (server, ctx) => {
      const r = desiredOf(server);
      return driver.ensure(r, await driver.observe(r, driverContext(30_000)), ctx);
    },
    remove: (id, ctx) => driver.forget(id, ctx),
    list: async (ctx) => {
      const ids: string[] = [];
      for await (const { owner_id } of driver.list(ctx)) ids.push(owner_id);
      return ids;
    },
    metrics: (server, ctx) => driver.metrics(desiredOf(server), ctx),
    backup: (server, backupId, ctx) => driver.backup(desiredOf(server), backupId, ctx),
    restore: (server, from, ctx) => driver.restore(desiredOf(server), from, ctx),
    upgrade: (server, fromVersion, ctx) => driver.upgrade(desiredOf(server), fromVersion, ctx),
    promote: (server, ctx) => driver.promote(desiredOf(server), ctx),
  };
}

export const redisServers = (options: RedisOptions): Servers => serversOf(openRedis(options));
export const mariadbServers = (options: MariadbOptions): Servers => serversOf(openMariadb(options));
export const postgresqlServers = (options: PostgresqlOptions): Servers => serversOf(openPostgresql(options));

function desiredOf({ id, ...spec }: DatabaseServer): Desired<ServerSpec> {
  return { id, spec };
}

async function observe(driver: EngineDriver, server: DatabaseServer, ctx: DriverContext): Promise<Seen> {
  const observation = await driver.observe(desiredOf(server), ctx);
  if (observation.state !== 'present') return { ...nothing, state: observation.state, differs: observation.state };
  const { upToDate, diff, observed } = observation;
  return { ...observed, differs: upToDate ? null : (diff ?? 'its state') };
}

const nothing = { storage_used_bytes: null, full: false, replication_lag_seconds: null, reason: null };
