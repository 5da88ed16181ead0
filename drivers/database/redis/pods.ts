// Redis and Valkey in pods of a cluster: the same configuration, users and limits as on a host (reconcile.ts), over the
// address of the pod, whose certificate is verified before a password is sent.
import path from 'node:path';
import { asDriverErrors } from '../../../core/driver';
import { serverOf, type DatabaseServer, type EngineDriver } from '../../database';
import { POD_CONF } from '../kubernetes/objects';
import { podContext, podEngine, type PodEngineOptions, type PodSteps } from '../kubernetes/pod_engine';
import type { ServerState } from '../proxied';
import type { ServerNotes } from '../server_notes';
import { fileNames } from './config';
import { infoFieldsOf, withServerAt, type SendCommand } from './connection';
import { redisMetrics } from './driver';
import { backup, restore } from './pod_backups';
import { podAddressOf, podVersionOf, programOf, type RedisPods } from './pod_server';
import {
  ensureLiveSettings,
  ensureRole,
  ensureStorage,
  ensureUsers,
  inspectServer,
  type ServerStore,
} from './reconcile';
import { servedCertificate } from './snapshot_stream';

/** @throws never: a cluster that is away is waited for by each call */
export function openRedisPods(name: 'redis' | 'valkey', options: PodEngineOptions): EngineDriver & { close(): void } {
  const engine = podContext(name, options);
  return {
    ...podEngine(engine, stepsOf(engine)),
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
  };
}

function stepsOf(engine: RedisPods): PodSteps<SendCommand> {
  return {
    program: (server, claim, image) => programOf(engine, server, claim, image),
    withServer: (server, found, work, ctx) => withServerAt(podAddressOf(engine, server, found), server, work, ctx),
    servedCertificate: (server, found, _send, ctx) => servedCertificate(podAddressOf(engine, server, found).at, ctx),
    version: (send) => podVersionOf(engine, send),
    inspect: (server, notes, send) => inspect(engine, server, notes, send),
    configure: (server, notes, change, send) => configure(engine, server, notes, change, send),
    metrics: (send) => redisMetrics(send, undefined),
  };
}

async function inspect(
  engine: RedisPods,
  server: DatabaseServer,
  notes: ServerNotes,
  send: SendCommand,
): Promise<ServerState> {
  const state = await inspectServer(engine, storeOf(notes, send), server, send);
  // The disk may be full before the limit of the package is reached.
  const isFailing = infoFieldsOf(await send('INFO', 'persistence')).get('aof_last_write_status') === 'err';
  return { ...state, full: state.full || isFailing };
}

async function configure(
  engine: RedisPods,
  server: DatabaseServer,
  notes: ServerNotes,
  change: 'certificate' | null,
  send: SendCommand,
): Promise<void> {
  const store = storeOf(notes, send);
  const conf = (name: string): string => path.posix.join(POD_CONF, name);
  if (change === 'certificate')
    await send(
      ...['CONFIG', 'SET', 'tls-cert-file', conf(fileNames.certificate)],
      ...['tls-key-file', conf(fileNames.key)],
    ).catch(() => undefined);
  await ensureUsers(store, server, send);
  await ensureLiveSettings(server, send);
  await ensureRole(server, send);
  await ensureStorage(engine, store, server, send);
}

function storeOf(notes: ServerNotes, send: SendCommand): ServerStore {
  return {
    ...notes,
    usedBytes: async () => Number(infoFieldsOf(await send('INFO', 'persistence')).get('aof_current_size') ?? 0),
    hasHole: () => Promise.resolve(false),
  };
}
