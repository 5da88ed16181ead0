// MariaDB: one server per database. Tenants connect over TCP, with optional TLS; the access proxy requires TLS at
// public endpoints (docs/decisions/0031). The platform connects over a socket.
import { serverOf, type EngineDriver, type ServerMetrics } from '../../database';
import { DriverError, asDriverErrors } from '../../../core/driver';
import {
  proxiedContext,
  proxiedEngine,
  type MeasuredUsage,
  type ProxiedContext,
  type ProxiedOptions,
  type ProxiedSteps,
} from '../proxied';
import { requireProgram } from '../proxied_server';
import { backup, restore } from './backup';
import { serverAccessOf, withServer, type Query } from './connection';
import { importData } from './import';
import { copyMasked } from './mask';
import { databaseOf } from './privileges';
import { notesOf } from '../server_notes';
import { ensureContent, inspectServer, storeOf } from './reconcile';
import { hasData, install, noteAnswer, renewCertificate, start, startedWith, stop } from './server';
import { ensureTimeZones } from './time_zones';
import { verifyRestored } from './verify';

export type MariadbOptions = ProxiedOptions;

export function openMariadb(options: MariadbOptions): EngineDriver {
  const engine = { ...proxiedContext('mariadb', 'MariaDB', options), tlsRequiredIn: 'mysql' as const };
  return {
    ...proxiedEngine(engine, stepsOf(engine)),
    name: 'mariadb',
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
    verifyRestored: (r, from, assertion, ctx) =>
      asDriverErrors(() => verifyRestored(engine, serverOf(r), from, assertion, ctx)),
    importData: (r, work, ctx) => asDriverErrors(() => importData(engine, serverOf(r), work, ctx)),
    copyMasked: (r, from, rules, ctx) => asDriverErrors(() => copyMasked(engine, serverOf(r), from, rules, ctx)),
    hasData: (id) => asDriverErrors(() => hasData(engine, id)),
    upgrade: () => Promise.reject(noUpgrade()),
    promote: () => Promise.reject(noReplicas()),
  };
}

function stepsOf(engine: ProxiedContext): ProxiedSteps<Query> {
  return {
    requireValid: (server) => {
      if (server.replica_of !== null) throw noReplicas();
      databaseOf(server);
    },
    setUp: (server, data, ctx) => install(engine, server, data, ctx),
    start: (serverDirectory, server, ctx) => start(engine, serverDirectory, server, ctx),
    stop: (id, ctx) => stop(engine, id, ctx),
    startedWith: (serverDirectory, server) => Promise.resolve(startedWith(engine, serverDirectory, server)),
    withServer: (serverDirectory, server, work, ctx) => withServer(serverAccessOf(serverDirectory), server, work, ctx),
    inspect: (serverDirectory, server, query) => inspectServer(engine, storeOf(serverDirectory), server, query),
    configure: async (serverDirectory, server, change, query) => {
      await noteAnswer(serverDirectory);
      if (change === 'certificate') await renewCertificate(engine, serverDirectory, server, query);
      await ensureContent(engine, storeOf(serverDirectory), server, query);
      await ensureTimeZones(notesOf(serverDirectory), requireProgram(engine, server.version), query);
    },
    metrics: mariadbMetrics,
  };
}

export async function mariadbMetrics(query: Query, usage: MeasuredUsage): Promise<ServerMetrics> {
  const rows = await query('SHOW GLOBAL STATUS');
  const status = new Map(rows.map(({ Variable_name: name, Value: value }) => [String(name), Number(value)]));
  return {
    // Without the connection of the platform.
    connections: Math.max(0, (status.get('Threads_connected') ?? 1) - 1),
    memory_bytes: usage?.memory_bytes ?? null,
    cpu_seconds: usage?.cpu_seconds ?? null,
    transactions: status.get('Handler_commit') ?? null,
    read_operations: status.get('Innodb_data_reads') ?? null,
    write_operations: status.get('Innodb_data_writes') ?? null,
  };
}

function noUpgrade(): DriverError {
  return new DriverError(
    'unsupported',
    'This host cannot upgrade MariaDB in place. Restore a backup into a database of the newer version.',
  );
}

function noReplicas(): DriverError {
  return new DriverError('unsupported', 'Replicas of MariaDB are not supported.');
}
