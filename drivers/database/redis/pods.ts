// Redis and Valkey in pods of a cluster: the same configuration, users and limits as on a host (reconcile.ts), over the
// address of the pod, whose certificate is verified before a password is sent.
import { X509Certificate } from 'node:crypto';
import path from 'node:path';
import { asDriverErrors, driverContext, DriverError, type Desired, type DriverContext } from '../../../core/driver';
import type { Observation } from '../../../core/driver';
import { serverOf, type DatabaseServer, type EngineDriver, type ObservedServer, type ServerSpec } from '../../database';
import type { BackupStore } from '../../backup_store';
import { openBackupFile, removeBackupDirectory } from '../../hosted_server/backups';
import { NotReady } from '../../hosted_server/readiness';
import type { ClaimOptions } from '../../workload/kubernetes/claims';
import { diskBytes } from '../disk_size';
import { serverObjectMetadata, POD_CONF, serverStatefulSet } from '../kubernetes/objects';
import { claimBefore } from '../kubernetes/replacement';
import { openServerLogs } from '../kubernetes/server_logs';
import {
  claimNameFor,
  ensureClaim,
  ensureServerPod,
  findServerPod,
  hasClaim,
  isPodApplied,
  isPodCurrent,
  listServerPods,
  readPodNote,
  removeServerPod,
  requireServerPod,
  stopServerPod,
  writePodNote,
  type ServerPod,
} from '../kubernetes/server_pods';
import { fileNames } from './config';
import { infoFieldsOf, withServerAt, type SendCommand } from './connection';
import { redisMetrics } from './driver';
import { backup, restore } from './pod_backups';
import { podAddressOf, programOf, unsupported, podVersionOf, type NetworkAddress, type PodEngine } from './pod_server';
import {
  ensureLiveSettings,
  ensureRole,
  ensureStorage,
  ensureUsers,
  inspectServer,
  type ServerStore,
} from './reconcile';
import { servedCertificate } from './snapshot_stream';

export interface RedisPodOptions {
  cluster: ClaimOptions;
  engine: 'redis' | 'valkey';
  /** For backups, as on a host. */
  directory: string;
  store: BackupStore | null;
  /** Images by version series (DATABASE_IMAGES). */
  images: ReadonlyMap<string, string>;
  /** Bytes per GB of `storage_gb`; default: 2^30. */
  gigabyteBytes?: number;
}

const SOON_MS = 1_000;
const FOUND_WITHIN_MS = 20_000;
/** A kubelet writes a changed Secret into pods within about a minute. */
const CERTIFICATE_MS = 5_000;
const nothingObserved: Omit<ObservedServer, 'state' | 'reason'> = {
  storage_used_bytes: null,
  full: false,
  replication_lag_seconds: null,
};

/** @throws never: a cluster that is away is waited for by each call */
export function openRedisPods(options: RedisPodOptions): EngineDriver & { close(): void } {
  const { cluster, engine: name, directory, store, images, gigabyteBytes = 2 ** 30 } = options;
  const logs = openServerLogs(cluster.client);
  const engine: PodEngine = { ...cluster, name, directory, store, images, gigabyteBytes, logs };
  return {
    name,
    fingerprint: () =>
      Promise.resolve({ healthy: true, reason: null, facts: { images: [...images.keys()].join(', ') } }),
    observe: (r, ctx) => asDriverErrors(() => observe(engine, r, ctx)),
    ensure: (r, _obs, ctx) => asDriverErrors(() => ensure(engine, serverOf(r), ctx)),
    remove: (r, _obs, ctx) => asDriverErrors(() => forget(engine, r.id, ctx)),
    list: (ctx) => listServerPods(engine, name, ctx),
    stop: (id, ctx) => asDriverErrors(() => stop(engine, id, ctx)),
    forget: (id, ctx) => asDriverErrors(() => forget(engine, id, ctx)),
    readLog: (id, position) => logs.read(id, position),
    metrics: (r, ctx) => asDriverErrors(() => measure(engine, serverOf(r), ctx)),
    versions: () => Promise.resolve([...images.keys()]),
    hasData: (id) => asDriverErrors(() => hasClaim(engine, id, driverContext(FOUND_WITHIN_MS))),
    window: () => Promise.resolve(null),
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) =>
      asDriverErrors(() => removeBackupDirectory(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId, from) => asDriverErrors(() => openBackupFile(engine, serverId, backupId, from)),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
    upgrade: () => Promise.reject(unsupported('Databases in the cluster cannot be upgraded yet.')),
    promote: () => Promise.reject(unsupported('Databases in the cluster have no replicas.')),
    close: () => logs.close(),
  };
}

async function observe(
  engine: PodEngine,
  r: Desired<ServerSpec>,
  ctx: DriverContext,
): Promise<Observation<ObservedServer>> {
  const server = serverOf(r);
  const found = await findServerPod(engine, server, ctx);
  if (found === 'absent') return { state: 'absent' };
  if (found === 'foreign')
    return { state: 'foreign', detail: 'Objects of the cluster that the platform did not create have its name.' };
  engine.logs.follow(server.id, found);
  const differs = await differenceOf(engine, server, found, ctx);
  if (found.address === null || (differs !== null && !isPodCurrent(found))) {
    // What ended was of an earlier configuration: what follows is no restart of this one.
    const isOver = found.state === 'failed' && !isPodCurrent(found);
    const state = found.state === 'running' || isOver ? 'starting' : found.state;
    const upToDate = !server.running && state === 'stopped' && differs === null;
    return {
      state: 'present',
      upToDate,
      observed: { ...nothingObserved, state, reason: isOver ? null : found.reason },
    };
  }
  try {
    return await observeRunning(engine, server, found, differs, ctx);
  } catch (error) {
    if (!(error instanceof NotReady)) throw error;
    return { state: 'present', upToDate: false, observed: { ...nothingObserved, state: 'starting', reason: null } };
  }
}

async function observeRunning(
  engine: PodEngine,
  server: DatabaseServer,
  found: ServerPod,
  differs: string | null,
  ctx: DriverContext,
): Promise<Observation<ObservedServer>> {
  const address = podAddressOf(engine, server, found);
  const hasCertificate = await isCertificate(address.at, server, ctx);
  const seen = await withServerAt(
    address,
    server,
    async (send) => ({
      ...(await inspectServer(engine, storeOf(engine, found, send, ctx), server, send)),
      isFailing: infoFieldsOf(await send('INFO', 'persistence')).get('aof_last_write_status') === 'err',
    }),
    ctx,
  );
  const diff = [
    server.running ? null : 'it should not run',
    hasCertificate ? null : 'certificate',
    ...[differs, seen.differs],
  ].filter((one) => one !== null);
  return {
    state: 'present',
    upToDate: diff.length === 0,
    ...(diff.length > 0 && { diff: diff.join(', ') }),
    observed: {
      ...{ state: 'running', reason: null, storage_used_bytes: seen.storageUsedBytes },
      // The disk may be full before the limit of the package is reached.
      full: seen.full || seen.isFailing,
      replication_lag_seconds: null,
    },
  };
}

/** One step. Whoever scaled or changed an object of it is corrected. */
async function ensure(
  engine: PodEngine,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<{ ref: { driver: string; name: string }; requeueMs?: number }> {
  if (server.replica_of !== null) throw unsupported('Databases in the cluster have no replicas.');
  const ref = { driver: engine.name, name: server.id };
  const before = await findServerPod(engine, server, ctx);
  // A replacement that did not come to its end is undone.
  const old = typeof before === 'string' ? null : claimBefore(before);
  const claim = old ?? (await claimNameFor(engine, server, before, ctx));
  await ensureClaim(engine, server, { name: claim, bytes: diskBytes(engine, server) }, ctx);
  const found = await ensureServerPod(engine, server, programOf(engine, server, claim, before), ctx);
  if (old !== null) await writePodNote(engine, found, 'replacing', null, ctx);
  engine.logs.follow(server.id, found);
  const isDown = !server.running && found.pod === null && found.state === 'stopped';
  if (isDown) return { ref };
  if (found.address === null || !isPodCurrent(found) || !server.running) {
    // An end is reported, and waited for, by the caller.
    if (found.reason !== null && found.state !== 'failed') throw new DriverError('transient', found.reason, 5_000);
    return { ref, requeueMs: SOON_MS };
  }
  const isRenewed = await configure(engine, server, found, ctx).catch((error: unknown) => {
    if (error instanceof NotReady) return null;
    throw error;
  });
  if (isRenewed === null) return { ref, requeueMs: SOON_MS };
  return isRenewed ? { ref } : { ref, requeueMs: CERTIFICATE_MS };
}

/** What needs no restart. @returns false while the server has its old certificate */
async function configure(
  engine: PodEngine,
  server: DatabaseServer,
  found: ServerPod,
  ctx: DriverContext,
): Promise<boolean> {
  const address = podAddressOf(engine, server, found);
  const hasCertificate = await isCertificate(address.at, server, ctx);
  await withServerAt(
    address,
    server,
    async (send) => {
      await requireVersion(engine, server, send);
      const store = storeOf(engine, found, send, ctx);
      const conf = (name: string): string => path.posix.join(POD_CONF, name);
      // Reads the files again, which the kubelet may have replaced by now.
      if (!hasCertificate)
        await send(
          ...['CONFIG', 'SET', 'tls-cert-file', conf(fileNames.certificate)],
          ...['tls-key-file', conf(fileNames.key)],
        ).catch(() => undefined);
      await ensureUsers(store, server, send);
      await ensureLiveSettings(server, send);
      await ensureRole(server, send);
      await ensureStorage(engine, store, server, send);
    },
    ctx,
  );
  return hasCertificate || isCertificate(address.at, server, ctx);
}

async function measure(engine: PodEngine, server: DatabaseServer, ctx: DriverContext): ReturnType<typeof redisMetrics> {
  const found = await requireServerPod(engine, server, ctx);
  return withServerAt(podAddressOf(engine, server, found), server, (send) => redisMetrics(send, undefined), ctx);
}

async function stop(engine: PodEngine, id: string, ctx: DriverContext): Promise<void> {
  if (!(await stopServerPod(engine, id, ctx)))
    throw new DriverError('transient', 'The cluster has not stopped the database yet.', SOON_MS);
}

async function forget(engine: PodEngine, id: string, ctx: DriverContext): Promise<void> {
  if (!(await removeServerPod(engine, id, ctx)))
    throw new DriverError('transient', 'The cluster has not removed the database yet.', SOON_MS);
}

async function differenceOf(
  engine: PodEngine,
  server: DatabaseServer,
  found: ServerPod,
  ctx: DriverContext,
): Promise<string | null> {
  const claim = await claimNameFor(engine, server, found, ctx);
  const program = programOf(engine, server, claim, found);
  if (!isPodApplied(found, serverStatefulSet(serverObjectMetadata(engine.prefix, server), server, program)))
    return 'objects';
  return found.pod === null || isPodCurrent(found) ? null : 'the pod is of an earlier configuration';
}

async function isCertificate(at: NetworkAddress['at'], { tls }: DatabaseServer, ctx: DriverContext): Promise<boolean> {
  return (await servedCertificate(at, ctx)).equals(new X509Certificate(tls.certificate).raw);
}

function storeOf(engine: PodEngine, found: ServerPod, send: SendCommand, ctx: DriverContext): ServerStore {
  return {
    readNote: (name) => Promise.resolve(readPodNote(found, name)),
    writeNote: (name, note) => writePodNote(engine, found, name, note, ctx),
    usedBytes: async () => Number(infoFieldsOf(await send('INFO', 'persistence')).get('aof_current_size') ?? 0),
    hasHole: () => Promise.resolve(false),
  };
}

/** @throws DriverError unsupported where the image is of another version than the operator says */
async function requireVersion(engine: PodEngine, { version }: DatabaseServer, send: SendCommand): Promise<void> {
  const present = await podVersionOf(engine, send);
  if (!`${present}.`.startsWith(`${version}.`))
    throw unsupported(`The image for ${engine.name} ${version} in DATABASE_IMAGES has ${engine.name} ${present}.`);
}
