// MariaDB: one server for each database. Tenants come over TLS, the platform by a socket.
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { EngineDriver, ServerMetrics, ServerSeen, ServerSpec } from '../../database';
import { DriverError, asDriverErrors } from '../../driver';
import type { DriverContext } from '../../driver';
import type { RuntimeDriver } from '../../runtime';
import { openBackup, removeBackup } from '../backups';
import { bringGate, gateDiffers, stopGate } from '../gate';
import { findHome, listHomes, makeHome, removeHome, requireHome, type Home } from '../home';
import { NotReady } from '../readiness';
import { isReplacing, putBack } from '../replacement';
import { endTask, reasonOf, stateOf, unitOf } from '../unit';
import { backup, restore } from './backup';
import { withServer } from './connection';
import { install, outdated, programOf, renewCertificate, start, stop, type MariadbEstate } from './server';
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

export function openMariadb({ runtime, directory, found, gigabyteBytes = 2 ** 30, publicAddresses }: MariadbOptions): EngineDriver {
  const estate: MariadbEstate = { runtime, directory: path.resolve(directory), engine: 'mariadb', found, gigabyteBytes, publicAddresses: publicAddresses ?? null };
  return {
    engine: 'mariadb',
    versions: () => Promise.resolve(newestFirst(found.map(({ series }) => series))),
    observe: (spec, ctx) => asDriverErrors(() => observe(estate, spec, ctx)),
    ensure: (spec, ctx) => asDriverErrors(() => ensure(estate, spec, ctx)),
    remove: (id, ctx) => asDriverErrors(() => remove(estate, id, ctx)),
    list: () => asDriverErrors(() => listHomes(estate)),
    backup: (spec, backupId, ctx) => asDriverErrors(() => backup(estate, spec, backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(estate, serverId, backupId, ctx)),
    openBackup: (serverId, backupId) => asDriverErrors(() => openBackup(estate, serverId, backupId)),
    window: () => Promise.resolve(null),
    restore: (spec, from, ctx) => asDriverErrors(() => restore(estate, spec, from, ctx)),
    upgrade: () => Promise.reject(new DriverError('unsupported', 'This host cannot upgrade MariaDB in place. Restore a backup into a database of the newer version.')),
    promote: () => Promise.reject(noReplicas()),
    metrics: (spec, ctx) => asDriverErrors(() => metrics(estate, spec, ctx)),
    readLog: (id, position) => runtime.readLog(unitOf(id), position),
  };
}

const nothingSeen: Omit<ServerSeen, 'state'> = { differs: null, storage_used_bytes: null, full: false, replication_lag_seconds: null, reason: null };

async function observe(estate: MariadbEstate, spec: ServerSpec, ctx: DriverContext): Promise<ServerSeen> {
  const home = await findHome(estate, spec.id);
  if (typeof home === 'string') return { ...nothingSeen, state: home, differs: home };
  const { state } = await stateOf(estate, spec.id);
  if (state.state === 'exited') return { ...nothingSeen, state: 'failed', differs: 'ended', reason: reasonOf(state) };
  if (state.state === 'gone') return { ...nothingSeen, state: 'stopped', differs: spec.running ? 'stopped' : null };
  try {
    return await seen(estate, home, spec, ctx);
  } catch (error) {
    if (error instanceof NotReady) return { ...nothingSeen, state: 'starting', differs: 'starting' };
    throw error;
  }
}

async function seen(estate: MariadbEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<ServerSeen> {
  const change = await outdated(estate, home, spec);
  // It may have been started with another password of ours.
  if (change === 'settings') return { ...nothingSeen, state: 'running', differs: change };
  const live = await withServer(home, spec, (ask) => look(estate, home, spec, ask), ctx);
  const differs = [spec.running ? null : 'running', change, live.differs, await gateDiffers(estate, home, spec)].filter((one) => one !== null);
  return { ...nothingSeen, state: 'running', differs: differs.length === 0 ? null : differs.join(', '), storage_used_bytes: live.storageUsedBytes, full: live.full };
}

async function ensure(estate: MariadbEstate, spec: ServerSpec, ctx: DriverContext): Promise<{ requeueMs?: number }> {
  if (spec.replica_of !== null) throw noReplicas();
  programOf(estate, spec.version);
  databaseOf(spec);
  const found = await findHome(estate, spec.id);
  if (found === 'absent') await endTask(estate, spec.id, 'setup', ctx);
  const home = found === 'absent' ? await makeHome(estate, spec.id, (draft) => install(estate, spec, draft.data, ctx), ctx) : await requireHome(estate, spec.id);
  if (await isReplacing(home)) {
    await stop(estate, spec.id, ctx);
    await putBack(home, ctx);
  }
  try {
    await bringGate(estate, home, spec, ctx);
    if (!spec.running) await stop(estate, spec.id, ctx);
    if (spec.running) await run(estate, home, spec, ctx);
    return {};
  } catch (error) {
    if (error instanceof NotReady) return { requeueMs: error.retryAfterMs };
    throw error;
  }
}

async function run(estate: MariadbEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  const { state } = await stateOf(estate, spec.id);
  const change = await outdated(estate, home, spec);
  if (state.state === 'running' && change === 'settings') await stop(estate, spec.id, ctx);
  if (state.state !== 'running' || change === 'settings') await start(estate, home, spec, ctx);
  await withServer(home, spec, async (ask) => {
    if (change === 'certificate') await renewCertificate(estate, home, spec, ask);
    await bring(estate, home, spec, ask);
  }, ctx);
}

async function remove(estate: MariadbEstate, id: string, ctx: DriverContext): Promise<void> {
  if ((await findHome(estate, id)) === 'foreign') return;
  await stopGate(estate, id, ctx);
  await stop(estate, id, ctx);
  await endTask(estate, id, 'setup', ctx);
  await removeHome(estate, id, ctx);
}

async function metrics(estate: MariadbEstate, spec: ServerSpec, ctx: DriverContext): Promise<ServerMetrics> {
  const home = await requireHome(estate, spec.id);
  const rows = await withServer(home, spec, (ask) => ask('SHOW GLOBAL STATUS'), ctx);
  const status = new Map(rows.map(({ Variable_name: name, Value: value }) => [String(name), Number(value)]));
  const { handle } = await stateOf(estate, spec.id);
  const usage = handle === null ? undefined : (await estate.runtime.usage([handle])).get(unitOf(spec.id));
  return {
    // Without the platform's own one.
    connections: Math.max(0, (status.get('Threads_connected') ?? 1) - 1), memory_bytes: usage?.memory_bytes ?? null, cpu_seconds: usage?.cpu_seconds ?? null,
    transactions: status.get('Handler_commit') ?? null, read_operations: status.get('Innodb_data_reads') ?? null, write_operations: status.get('Innodb_data_writes') ?? null,
  };
}

function noReplicas(): DriverError {
  return new DriverError('unsupported', 'The platform makes no replicas of MariaDB.');
}

function newestFirst(series: string[]): string[] {
  return [...new Set(series)].sort((one, other) => other.localeCompare(one, 'en', { numeric: true }));
}
