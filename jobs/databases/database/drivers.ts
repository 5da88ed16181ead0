// The engines of databases that this host has, and what listens before them.
import { join } from 'node:path';
import { enginesInPods } from '../../../core/settings/workloads';
import { makePassableDirectory } from '../../../core/directory';
import { openBackupStore } from '../../../drivers/backup_store/open';
import { openMariadb } from '../../../drivers/database/mariadb/driver';
import { openMariadbPods } from '../../../drivers/database/mariadb/pods';
import { openPostgresql } from '../../../drivers/database/postgresql/driver';
import { openPostgresqlPods, type PostgresqlPodOptions } from '../../../drivers/database/postgresql/pods/driver';
import { openRedis } from '../../../drivers/database/redis/driver';
import { openRedisPods } from '../../../drivers/database/redis/pods';
import type { EngineDriver } from '../../../drivers/database';
import { driverContext } from '../../../core/driver';
import type { HostParts } from '../../declarations';
import type { HostDrivers } from '../../job';
import { openSpreader } from '../../../drivers/endpoint/haproxy';
import { openPooler } from '../../../drivers/endpoint/pgbouncer';

const TRIAL_MS = 10_000;

/** One driver for each installed engine. An engine that is installed later is available after the next start. */
export async function openEngines({
  config,
  runtime,
  engines: found,
  cluster,
  facts,
}: HostParts): Promise<Pick<HostDrivers, 'databases' | 'clusterDatabases'>> {
  const directory = config.databaseDir;
  const { postgresql, mariadb, ...others } = await found();
  makePassableDirectory(directory);
  const engines: EngineDriver[] = [];
  const store = openBackupStore(config);
  // Where the runtime gives instances separate disks, database servers get them too.
  const disks = (await runtime.fingerprint(driverContext(TRIAL_MS))).facts.disk_limit === 'hard';
  if (postgresql.length) engines.push(openPostgresql({ runtime, directory, found: postgresql, store, disks }));
  for (const engine of ['redis', 'valkey'] as const)
    if (others[engine].length)
      engines.push(openRedis({ runtime, directory, engine, found: others[engine], store, disks }));
  if (mariadb.length) engines.push(openMariadb({ runtime, directory, found: mariadb, store, disks }));
  return {
    databases: new Map(engines.map((driver) => [driver.name, driver])),
    clusterDatabases: new Map(
      cluster === null
        ? []
        : enginesInPods.map((engine) => [
            engine,
            openPods(engine, { config, cluster, facts, runtime, found: postgresql }),
          ]),
    ),
  };
}

type PodEngineName = (typeof enginesInPods)[number];

/** By engine: what opens its servers in pods. */
const podEngines: Record<
  PodEngineName,
  (options: PostgresqlPodOptions, host: Pick<HostParts, 'facts'>) => EngineDriver & { close(): void }
> = {
  postgresql: openPostgresqlPods,
  redis: (options) => openRedisPods('redis', options),
  valkey: (options) => openRedisPods('valkey', options),
  mariadb: (options, { facts }) =>
    openMariadbPods({ ...options, tools: async () => (await facts()).programs.mariadb_dump ?? null }),
};

function openPods(
  engine: PodEngineName,
  {
    config,
    facts,
    ...own
  }: Pick<HostParts, 'config' | 'facts'> & Pick<PostgresqlPodOptions, 'cluster' | 'runtime' | 'found'>,
): EngineDriver & { close(): void } {
  const images = config.databaseImages.filter((one) => one.engine === engine);
  const options = {
    ...{ ...own, directory: config.databaseDir, store: openBackupStore(config) },
    images: new Map(images.map(({ version, image }) => [version, image])),
  };
  return podEngines[engine](options, { facts });
}

/** Both, also where their programs are not installed yet. */
export function openEndpoints({ config, runtime, facts }: HostParts): Pick<HostDrivers, 'endpoints'> {
  const directory = join(config.databaseDir, 'endpoints');
  const pool = openPooler({ runtime, directory, found: async () => (await facts()).programs.pgbouncer ?? null });
  const spread = openSpreader({ runtime, directory, found: async () => (await facts()).programs.haproxy ?? null });
  return { endpoints: { pool, spread } };
}
