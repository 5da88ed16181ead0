// Redis and Valkey: one process per database. The default user is off, tenants connect over TLS, the platform over a
// socket.
import { serverOf, type EngineDriver, type ServerMetrics } from '../../database';
import { asDriverErrors } from '../../../core/driver';
import {
  ensureProxiedServer,
  proxiedContext,
  proxiedEngine,
  type MeasuredUsage,
  type ProxiedOptions,
  type ProxiedSteps,
} from '../proxied';
import { backup, restore, upgrade } from './backup';
import { infoFieldsOf, withServer, type SendCommand } from './connection';
import { importData } from './import';
import { moveToLargerDisk } from './larger_disk';
import { ensureLiveSettings, ensureRole, ensureStorage, ensureUsers, inspectServer, storeOf } from './reconcile';
import { hasData, renewCertificate, setUp, start, startedWith, stop, type RedisContext } from './server';
import { verifyRestored } from './verify';

export interface RedisOptions extends ProxiedOptions {
  engine: 'redis' | 'valkey';
}

const products = { redis: 'Redis', valkey: 'Valkey' } as const;

export function openRedis({ engine: name, ...options }: RedisOptions): EngineDriver {
  const engine = proxiedContext(name, products[name], options);
  const steps = stepsOf(engine);
  return {
    ...proxiedEngine(engine, steps),
    name,
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
    verifyRestored: (r, from, _, ctx) => asDriverErrors(() => verifyRestored(engine, serverOf(r), from, ctx)),
    importData: (r, work, ctx) => asDriverErrors(() => importData(engine, serverOf(r), work, ctx)),
    hasData: (id) => asDriverErrors(() => hasData(engine, id)),
    upgrade: (r, fromVersion, ctx) => asDriverErrors(() => upgrade(engine, serverOf(r), fromVersion, ctx)),
    promote: (r, ctx) =>
      asDriverErrors(
        async () => void (await ensureProxiedServer(engine, steps, { ...serverOf(r), replica_of: null }, ctx)),
      ),
  };
}

function stepsOf(engine: RedisContext): ProxiedSteps<SendCommand> {
  return {
    requireValid: () => undefined,
    setUp: (server, data, ctx) => setUp(engine, server, data, ctx),
    start: (serverDirectory, server, ctx) => start(engine, serverDirectory, server, ctx),
    stop: (id, ctx) => stop(engine, id, ctx),
    move: (serverDirectory, server, disk, ctx) => moveToLargerDisk(engine, serverDirectory, server, disk, ctx),
    startedWith: (serverDirectory, server) => startedWith(engine, serverDirectory, server),
    withServer,
    inspect: (serverDirectory, server, send) => inspectServer(engine, storeOf(serverDirectory), server, send),
    configure: async (serverDirectory, server, change, send) => {
      if (change === 'certificate') await renewCertificate(engine, serverDirectory, server, send);
      await ensureUsers(storeOf(serverDirectory), server, send);
      await ensureLiveSettings(server, send);
      await ensureRole(server, send);
      await ensureStorage(engine, storeOf(serverDirectory), server, send);
    },
    metrics: redisMetrics,
  };
}

export async function redisMetrics(send: SendCommand, usage: MeasuredUsage): Promise<ServerMetrics> {
  const info = infoFieldsOf(await send('INFO'));
  const hits = Number(info.get('keyspace_hits')) + Number(info.get('keyspace_misses'));
  const commands = Number(info.get('total_commands_processed'));
  return {
    // Without the connection of the platform.
    connections: Math.max(0, Number(info.get('connected_clients')) - 1),
    memory_bytes: Number(info.get('used_memory_rss')),
    cpu_seconds: usage?.cpu_seconds ?? Number(info.get('used_cpu_sys')) + Number(info.get('used_cpu_user')),
    transactions: commands,
    read_operations: hits,
    write_operations: null,
  };
}
