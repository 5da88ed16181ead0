// MariaDB: one server for each database. Tenants come over TLS, the platform by a socket.
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { EngineDriver, ServerMetrics, ServerSeen, ServerSpec } from '../../database';
import { DriverError, asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import { openBackup, removeBackup } from '../backups';
import { gateDiffers } from '../gate';
import { ensureServer, nothingSeen, observeServer, removeServer, versionsOf } from '../gated';
import { listHomes, requireHome, type Home } from '../home';
import { stateOf, unitOf } from '../unit';
import { backup, restore } from './backup';
import { withServer } from './connection';
import { install, noteAnswer, outdated, programOf, renewCertificate, start, stop, type MariadbEstate } from './server';
import { bring, databaseOf, look } from './wishes';

export interface MariadbOptions {
  runtime: RuntimeDriver;
  /** Of all servers and their backups; made where it is missing. */
  directory: string;
  /** The servers of this host, of hostFacts(). */
  found: EngineFound[];
  /** What one GB of `storage_gb` counts; 2^30. */
  gigabyteBytes?: number;
  /** Where public endpoints are reached; without it all addresses of the host but those of the loopback interface. */
  publicAddresses?: string[];
}

export function openMariadb({
  runtime,
  directory,
  found,
  gigabyteBytes = 2 ** 30,
  publicAddresses,
}: MariadbOptions): EngineDriver {
  const estate: MariadbEstate = {
    runtime,
    directory: path.resolve(directory),
    engine: 'mariadb',
    found,
    gigabyteBytes,
    publicAddresses: publicAddresses ?? null,
  };
  return {
    engine: 'mariadb',
    versions: () => Promise.resolve(versionsOf(found)),
    observe: (spec, ctx) => asDriverErrors(() => observeServer(estate, spec, (home) => seen(estate, home, spec, ctx))),
    ensure: (spec, ctx) => asDriverErrors(() => ensure(estate, spec, ctx)),
    remove: (id, ctx) => asDriverErrors(() => removeServer(estate, id, stop, ctx)),
    list: () => asDriverErrors(() => listHomes(estate)),
    backup: (spec, backupId, ctx) => asDriverErrors(() => backup(estate, spec, backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(estate, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(estate, serverId, backupId)),
    window: () => Promise.resolve(null),
    restore: (spec, from, ctx) => asDriverErrors(() => restore(estate, spec, from, ctx)),
    upgrade: () =>
      Promise.reject(
        new DriverError(
          'unsupported',
          'This host cannot upgrade MariaDB in place. Restore a backup into a database of the newer version.',
        ),
      ),
    promote: () => Promise.reject(noReplicas()),
    metrics: (spec, ctx) => asDriverErrors(() => metrics(estate, spec, ctx)),
    readLog: (id, position) => runtime.readLog(unitOf(id), position),
  };
}

async function seen(estate: MariadbEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<ServerSeen> {
  const change = await outdated(estate, home, spec);
  // It may have been started with another password of ours.
  if (change === 'settings') return { ...nothingSeen, state: 'running', differs: change };
  const live = await withServer(home, spec, (ask) => look(estate, home, spec, ask), ctx);
  const differs = [spec.running ? null : 'running', change, live.differs, await gateDiffers(estate, home, spec)].filter(
    (one) => one !== null,
  );
  return {
    ...nothingSeen,
    state: 'running',
    differs: differs.length === 0 ? null : differs.join(', '),
    storage_used_bytes: live.storageUsedBytes,
    full: live.full,
  };
}

async function ensure(estate: MariadbEstate, spec: ServerSpec, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  if (spec.replica_of !== null) throw noReplicas();
  programOf(estate, spec.version);
  databaseOf(spec);
  return ensureServer(
    estate,
    spec,
    { setUp: (data) => install(estate, spec, data, ctx), stop, bring: (home) => run(estate, home, spec, ctx) },
    ctx,
  );
}

async function run(estate: MariadbEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  const { state } = await stateOf(estate, spec.id);
  const change = await outdated(estate, home, spec);
  if (state.state === 'running' && change === 'settings') await stop(estate, spec.id, ctx);
  if (state.state !== 'running' || change === 'settings') await start(estate, home, spec, ctx);
  await withServer(
    home,
    spec,
    async (ask) => {
      await noteAnswer(home);
      if (change === 'certificate') await renewCertificate(estate, home, spec, ask);
      await bring(estate, home, spec, ask);
    },
    ctx,
  );
}

async function metrics(estate: MariadbEstate, spec: ServerSpec, ctx: DriverContext): Promise<ServerMetrics> {
  const home = await requireHome(estate, spec.id);
  const rows = await withServer(home, spec, (ask) => ask('SHOW GLOBAL STATUS'), ctx);
  const status = new Map(rows.map(({ Variable_name: name, Value: value }) => [String(name), Number(value)]));
  const { handle } = await stateOf(estate, spec.id);
  const usage = handle === null ? undefined : (await estate.runtime.usage([handle])).get(unitOf(spec.id));
  return {
    // Without the platform's own one.
    connections: Math.max(0, (status.get('Threads_connected') ?? 1) - 1),
    memory_bytes: usage?.memory_bytes ?? null,
    cpu_seconds: usage?.cpu_seconds ?? null,
    transactions: status.get('Handler_commit') ?? null,
    read_operations: status.get('Innodb_data_reads') ?? null,
    write_operations: status.get('Innodb_data_writes') ?? null,
  };
}

function noReplicas(): DriverError {
  return new DriverError('unsupported', 'The platform makes no replicas of MariaDB.');
}
