// The engines of databases that this host has, and what listens before them.
import { join } from 'node:path';
import type { Config } from '../core/config';
import { makeDirectory } from '../core/directory';
import type { HostFacts } from '../core/host_facts';
import { openMariadb } from '../drivers/database/mariadb/driver';
import { openPostgresql } from '../drivers/database/postgresql/driver';
import { openRedis } from '../drivers/database/redis/driver';
import type { EngineDriver, EngineId } from '../drivers/database';
import type { EndpointDrivers } from '../drivers/endpoint';
import { openSpreader } from '../drivers/endpoint/haproxy';
import { openPooler } from '../drivers/endpoint/pgbouncer';
import type { RuntimeDriver } from '../drivers/runtime';

/** One driver for each engine that was found. An engine that is installed later is there after the next start. */
export function openEngines(
  { databaseDir: directory }: Pick<Config, 'databaseDir'>,
  runtime: RuntimeDriver,
  facts: HostFacts,
): Map<EngineId, EngineDriver> {
  makeDirectory(directory, 0o711);
  const engines: EngineDriver[] = [];
  if (facts.postgresql.length) engines.push(openPostgresql({ runtime, directory, found: facts.postgresql }));
  for (const engine of ['redis', 'valkey'] as const)
    if (facts[engine].length) engines.push(openRedis({ runtime, directory, engine, found: facts[engine] }));
  if (facts.mariadb.length) engines.push(openMariadb({ runtime, directory, found: facts.mariadb }));
  return new Map(engines.map((driver) => [driver.name, driver]));
}

/** Both, also where their programs are not installed yet. */
export function openEndpoints(
  { databaseDir }: Pick<Config, 'databaseDir'>,
  runtime: RuntimeDriver,
  facts: () => Promise<HostFacts>,
): EndpointDrivers {
  const directory = join(databaseDir, 'endpoints');
  return {
    pool: openPooler({ runtime, directory, found: async () => (await facts()).programs.pgbouncer ?? null }),
    spread: openSpreader({ runtime, directory, found: async () => (await facts()).programs.haproxy ?? null }),
  };
}
