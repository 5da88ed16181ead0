// Engines in pods: how the server of a database is observed and ensured in a cluster, the counterpart of
// drivers/database/proxied.ts. Their differences are the steps passed to podEngine().
import { X509Certificate } from 'node:crypto';
import { asDriverErrors, driverContext, DriverError, type Desired, type DriverContext } from '../../../core/driver';
import type { Observation } from '../../../core/driver';
import {
  serverOf,
  type DatabaseServer,
  type EngineDriver,
  type EngineId,
  type ObservedServer,
  type ServerMetrics,
  type ServerSpec,
} from '../../database';
import type { BackupStore } from '../../backup_store';
import { openBackupFile, removeBackupDirectory } from '../../hosted_server/backups';
import { NotReady } from '../../hosted_server/readiness';
import type { ClaimOptions } from '../../workload/kubernetes/claims';
import { LABEL } from '../../workload/kubernetes/names';
import { openPodUsage, type PodUsage } from '../../workload/kubernetes/pod_usage';
import { hasCode } from '../../kubernetes/client/failure';
import { diskBytes } from '../disk_size';
import type { MeasuredUsage, ServerState } from '../proxied';
import type { ServerNotes } from '../server_notes';
import { serverObjectMetadata, serverStatefulSet, type PodProgram } from './objects';
import { claimBefore } from './replacement';
import { openServerLogs, type ServerLogs } from './server_logs';
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
} from './server_pods';

export interface PodEngineOptions {
  cluster: ClaimOptions;
  /** For backups, as on a host. */
  directory: string;
  store: BackupStore | null;
  /** Images by version series (DATABASE_IMAGES). */
  images: ReadonlyMap<string, string>;
  /** Bytes per GB of `storage_gb`; default: 2^30. */
  gigabyteBytes?: number;
}

export interface PodEngine extends ClaimOptions {
  name: EngineId;
  directory: string;
  store: BackupStore | null;
  images: ReadonlyMap<string, string>;
  gigabyteBytes: number;
  logs: ServerLogs;
  usage: PodUsage;
}

/** `Client`: sends commands to a running server. */
export interface PodSteps<Client> {
  /** @throws DriverError invalid, unsupported for a spec that the engine does not support */
  requireValid?(server: DatabaseServer): void;
  /** `present`: the server as the cluster has it. */
  program(server: DatabaseServer, claim: string, image: string, present: ServerPod | null): PodProgram;
  /** The password is sent once the certificate is verified. @throws NotReady @throws DriverError conflict */
  withServer<T>(
    server: DatabaseServer,
    found: ServerPod,
    work: (client: Client) => Promise<T>,
    ctx: DriverContext,
  ): Promise<T>;
  /** The certificate that the server shows now, DER. @throws NotReady */
  servedCertificate(server: DatabaseServer, found: ServerPod, client: Client, ctx: DriverContext): Promise<Buffer>;
  /** Version of the server, such as 7.0.15. */
  version(client: Client): Promise<string>;
  /** Read-only. */
  inspect(server: DatabaseServer, notes: ServerNotes, client: Client): Promise<ServerState>;
  /** Applies what needs no restart. `certificate`: has it read its files again, which the kubelet replaces. */
  configure(server: DatabaseServer, notes: ServerNotes, change: 'certificate' | null, client: Client): Promise<void>;
  /** `usage`: of its pod; undefined where the cluster does not measure pods. */
  metrics(client: Client, usage: MeasuredUsage): Promise<ServerMetrics>;
}

/** A disk that a server has had data on: without them, it is not that disk any more. */
interface BegunNote {
  claim: string;
  /** The server has been told: it makes no new data. */
  told: boolean;
}

const SOON_MS = 1_000;
const FOUND_WITHIN_MS = 20_000;
/** A kubelet writes a changed Secret into pods within about a minute. */
const CERTIFICATE_MS = 5_000;
const BEGUN = 'begun';
const nothingObserved: Omit<ObservedServer, 'state' | 'reason'> = {
  storage_used_bytes: null,
  full: false,
  replication_lag_seconds: null,
};

export function podContext<Name extends EngineId>(
  name: Name,
  { cluster, directory, store, images, gigabyteBytes = 2 ** 30 }: PodEngineOptions,
): PodEngine & { name: Name } {
  const logs = openServerLogs(cluster.client);
  const usage = openPodUsage(cluster.client, cluster.prefix);
  return { ...cluster, name, directory, store, images, gigabyteBytes, logs, usage };
}

/** A driver without backups. @throws never: a cluster that is away is waited for by each call */
export function podEngine<Client>(
  engine: PodEngine,
  steps: PodSteps<Client>,
): Omit<EngineDriver, 'backup' | 'restore'> & { close(): void } {
  const { name, images, logs } = engine;
  return {
    name,
    fingerprint: () =>
      Promise.resolve({ healthy: true, reason: null, facts: { images: [...images.keys()].join(', ') } }),
    observe: (r, ctx) => asDriverErrors(() => observe(engine, steps, r, ctx)),
    ensure: (r, _obs, ctx) => asDriverErrors(() => ensure(engine, steps, serverOf(r), ctx)),
    remove: (r, _obs, ctx) => asDriverErrors(() => forget(engine, r.id, ctx)),
    list: (ctx) => listServerPods(engine, name, ctx),
    stop: (id, ctx) => asDriverErrors(() => stop(engine, id, ctx)),
    forget: (id, ctx) => asDriverErrors(() => forget(engine, id, ctx)),
    readLog: (id, position) => logs.read(id, position),
    metrics: (r, ctx) => asDriverErrors(() => measure(engine, steps, serverOf(r), ctx)),
    versions: () => Promise.resolve([...images.keys()]),
    hasData: (id) => asDriverErrors(() => hasClaim(engine, id, driverContext(FOUND_WITHIN_MS))),
    window: () => Promise.resolve(null),
    removeBackup: (serverId, backupId, ctx) =>
      asDriverErrors(() => removeBackupDirectory(engine, serverId, backupId, ctx)),
    openBackup: (serverId, backupId, from) => asDriverErrors(() => openBackupFile(engine, serverId, backupId, from)),
    upgrade: () => Promise.reject(unsupported('Databases in the cluster cannot be upgraded yet.')),
    promote: () => Promise.reject(unsupported('Databases in the cluster have no replicas.')),
    close: () => logs.close(),
  };
}

/** @throws DriverError unsupported where no image is named for its version, and it does not have one already */
export function imageOf(engine: PodEngine, server: DatabaseServer, present: ServerPod | 'absent' | 'foreign'): string {
  const has = typeof present === 'string' ? undefined : present.statefulSet.spec?.template.spec?.containers[0]?.image;
  return imageFor(engine, server, has);
}

/** @param present the image that it has. @throws DriverError unsupported */
export function imageFor(
  { name, images }: PodEngine,
  { version }: Pick<DatabaseServer, 'version'>,
  present: string | undefined,
): string {
  const image = images.get(version) ?? present;
  if (image !== undefined) return image;
  throw unsupported(`The operator has named no image of ${name} ${version} in DATABASE_IMAGES.`);
}

/** Whether a server may make its first data on this disk: it has had none there yet. */
export function mayBegin(present: ServerPod | 'absent' | 'foreign' | null, claim: string): boolean {
  if (present === null || typeof present === 'string') return true;
  return readPodNote<BegunNote>(present, BEGUN)?.claim !== claim;
}

export function unsupported(message: string): DriverError {
  return new DriverError('unsupported', message);
}

async function observe<Client>(
  engine: PodEngine,
  steps: PodSteps<Client>,
  r: Desired<ServerSpec>,
  ctx: DriverContext,
): Promise<Observation<ObservedServer>> {
  const server = serverOf(r);
  const found = await findServerPod(engine, server, ctx);
  if (found === 'absent') return { state: 'absent' };
  if (found === 'foreign')
    return { state: 'foreign', detail: 'Objects of the cluster that the platform did not create have its name.' };
  engine.logs.follow(server.id, found);
  const differs = await differenceOf(engine, steps, server, found, ctx);
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
    return await observeRunning(engine, steps, server, found, differs, ctx);
  } catch (error) {
    if (!(error instanceof NotReady)) throw error;
    return { state: 'present', upToDate: false, observed: { ...nothingObserved, state: 'starting', reason: null } };
  }
}

async function observeRunning<Client>(
  engine: PodEngine,
  steps: PodSteps<Client>,
  server: DatabaseServer,
  found: ServerPod,
  differs: string | null,
  ctx: DriverContext,
): Promise<Observation<ObservedServer>> {
  const seen = await steps.withServer(
    server,
    found,
    async (client) => ({
      ...(await steps.inspect(server, podNotesOf(engine, found, ctx), client)),
      hasCertificate: await hasCertificate(steps, server, found, client, ctx),
    }),
    ctx,
  );
  const diff = [
    server.running ? null : 'it should not run',
    seen.hasCertificate ? null : 'certificate',
    readPodNote<BegunNote>(found, BEGUN)?.told ? null : 'first start',
    ...[differs, seen.differs],
  ].filter((one) => one !== null);
  return {
    state: 'present',
    upToDate: diff.length === 0,
    ...(diff.length > 0 && { diff: diff.join(', ') }),
    observed: {
      ...{ state: 'running', reason: null, storage_used_bytes: seen.storageUsedBytes },
      ...{ full: seen.full, replication_lag_seconds: seen.lagSeconds },
    },
  };
}

/** One step. Whoever scaled or changed an object of it is corrected. */
async function ensure<Client>(
  engine: PodEngine,
  steps: PodSteps<Client>,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<{ ref: { driver: string; name: string }; requeueMs?: number }> {
  if (server.replica_of !== null) throw unsupported('Databases in the cluster have no replicas.');
  steps.requireValid?.(server);
  const ref = { driver: engine.name, name: server.id };
  const before = await findServerPod(engine, server, ctx);
  // A replacement that did not come to its end is undone.
  const old = typeof before === 'string' ? null : claimBefore(before);
  const claim = old ?? (await claimNameFor(engine, server, before, ctx));
  await ensureClaim(engine, server, { name: claim, bytes: diskBytes(engine, server) }, ctx);
  const program = steps.program(
    server,
    claim,
    imageOf(engine, server, before),
    typeof before === 'string' ? null : before,
  );
  const found = await ensureServerPod(engine, server, program, ctx);
  if (old !== null) await writePodNote(engine, found, 'replacing', null, ctx);
  engine.logs.follow(server.id, found);
  const isDown = !server.running && found.pod === null && found.state === 'stopped';
  if (isDown) return { ref };
  if (found.address === null || !isPodCurrent(found) || !server.running) {
    // An end is reported, and waited for, by the caller.
    if (found.reason !== null && found.state !== 'failed') throw new DriverError('transient', found.reason, 5_000);
    return { ref, requeueMs: SOON_MS };
  }
  const isConfigured = await configure(engine, steps, server, found, ctx).catch((error: unknown) => {
    if (error instanceof NotReady) return null;
    throw error;
  });
  if (isConfigured === null) return { ref, requeueMs: SOON_MS };
  const told = !mayBegin(before, claim);
  await writePodNote(engine, found, BEGUN, { claim, told } satisfies BegunNote, ctx);
  if (!told) return { ref, requeueMs: SOON_MS };
  return isConfigured ? { ref } : { ref, requeueMs: CERTIFICATE_MS };
}

/** What needs no restart. @returns false while the server has its old certificate */
function configure<Client>(
  engine: PodEngine,
  steps: PodSteps<Client>,
  server: DatabaseServer,
  found: ServerPod,
  ctx: DriverContext,
): Promise<boolean> {
  const work = async (client: Client): Promise<boolean> => {
    requireImageVersion(engine, server, await steps.version(client));
    const isCurrent = await hasCertificate(steps, server, found, client, ctx);
    await steps.configure(server, podNotesOf(engine, found, ctx), isCurrent ? null : 'certificate', client);
    return isCurrent;
  };
  return steps.withServer(server, found, work, ctx);
}

async function measure<Client>(
  engine: PodEngine,
  steps: PodSteps<Client>,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<ServerMetrics> {
  const found = await requireServerPod(engine, server, ctx);
  const usage = await usageOf(engine, found, ctx);
  return steps.withServer(server, found, (client) => steps.metrics(client, usage), ctx);
}

async function usageOf(engine: PodEngine, { pod }: ServerPod, ctx: DriverContext): Promise<MeasuredUsage> {
  if (pod === null) return undefined;
  engine.usage.changed(pod);
  const labels = { [LABEL.database]: pod.metadata?.labels?.[LABEL.database] ?? '' };
  const measured = await engine.usage.read(ctx, labels).catch((error: unknown) => {
    if (hasCode(error, 'unavailable', 'forbidden')) return null;
    throw error;
  });
  return measured?.get(pod.metadata?.uid ?? '');
}

async function stop(engine: PodEngine, id: string, ctx: DriverContext): Promise<void> {
  if (!(await stopServerPod(engine, id, ctx)))
    throw new DriverError('transient', 'The cluster has not stopped the database yet.', SOON_MS);
}

async function forget(engine: PodEngine, id: string, ctx: DriverContext): Promise<void> {
  if (!(await removeServerPod(engine, id, ctx)))
    throw new DriverError('transient', 'The cluster has not removed the database yet.', SOON_MS);
}

async function differenceOf<Client>(
  engine: PodEngine,
  steps: PodSteps<Client>,
  server: DatabaseServer,
  found: ServerPod,
  ctx: DriverContext,
): Promise<string | null> {
  const claim = await claimNameFor(engine, server, found, ctx);
  const program = steps.program(server, claim, imageOf(engine, server, found), found);
  if (!isPodApplied(found, serverStatefulSet(serverObjectMetadata(engine.prefix, server), server, program)))
    return 'objects';
  return found.pod === null || isPodCurrent(found) ? null : 'the pod is of an earlier configuration';
}

async function hasCertificate<Client>(
  steps: PodSteps<Client>,
  server: DatabaseServer,
  found: ServerPod,
  client: Client,
  ctx: DriverContext,
): Promise<boolean> {
  const served = await steps.servedCertificate(server, found, client, ctx);
  return served.equals(new X509Certificate(server.tls.certificate).raw);
}

/** What the platform keeps about a server in a pod. */
export function podNotesOf(engine: PodEngine, found: ServerPod, ctx: DriverContext): ServerNotes {
  return {
    readNote: (name) => Promise.resolve(readPodNote(found, name)),
    writeNote: (name, note) => writePodNote(engine, found, name, note, ctx),
  };
}

/** @throws DriverError unsupported where the image is of another version than the operator says */
export function requireImageVersion({ name }: PodEngine, { version }: DatabaseServer, present: string): void {
  if (!`${present}.`.startsWith(`${version}.`))
    throw unsupported(`The image for ${name} ${version} in DATABASE_IMAGES has ${name} ${present}.`);
}
