// PostgreSQL with automatic failover: what the operator of the cluster does not do. Users, databases, limits and notes
// are as of a server in one pod, over the address of the primary.
import { X509Certificate } from 'node:crypto';
import { DriverError, type Desired, type DriverContext, type Observation } from '../../../../core/driver';
import { serverOf, type DatabaseServer, type ObservedServer, type ServerSpec } from '../../../database';
import { NotReady } from '../../../hosted_server/readiness';
import { requireImageVersion, unsupported, type PodEngine } from '../../kubernetes/pod_engine';

import { configure, inspect, podAddressOf, podCertificateOf, podVersionOf, withPod } from '../pods/server';
import type { Session } from '../session';
import {
  desiredObjects,
  DURABLE,
  ensureFailoverServer,
  failoverNotesOf,
  findFailoverServer,
  isFailoverApplied,
  type FailoverServer,
} from './cluster';
import { OPERATOR_ROLES } from './objects';

const SOON_MS = 1_000;
/** A kubelet writes a changed Secret into pods within about a minute. */
const CERTIFICATE_MS = 5_000;
const nothingObserved = { storage_used_bytes: null, full: false, replication_lag_seconds: null };

/** Whether a server has standbys that may take its place. */
export function hasFailover({ nodes = 1 }: Pick<ServerSpec, 'nodes'>): boolean {
  return nodes > 1;
}

export async function observeFailover(
  engine: PodEngine,
  r: Desired<ServerSpec>,
  ctx: DriverContext,
): Promise<Observation<ObservedServer>> {
  const server = serverOf(r);
  const found = await findFailoverServer(engine, server, ctx);
  if (found === 'absent') return { state: 'absent' };
  if (found === 'foreign')
    return { state: 'foreign', detail: 'Objects of the cluster that the platform did not create have its name.' };
  engine.logs.follow(server.id, { pod: found.primary });
  const { cluster } = await desiredObjects(engine, server, found, ctx);
  const differs = isFailoverApplied(found, cluster) ? null : 'objects';
  const { state, reason } = found;
  if (state !== 'running') {
    const upToDate = !server.running && state === 'stopped' && differs === null;
    return { state: 'present', upToDate, observed: { ...nothingObserved, state, reason } };
  }
  try {
    return await observeRunning(engine, server, found, differs, ctx);
  } catch (error) {
    if (!(error instanceof NotReady)) throw error;
    return { state: 'present', upToDate: false, observed: { ...nothingObserved, state: 'starting', reason } };
  }
}

async function observeRunning(
  engine: PodEngine,
  server: DatabaseServer,
  found: FailoverServer,
  differs: string | null,
  ctx: DriverContext,
): Promise<Observation<ObservedServer>> {
  const seen = await withPod(podAddressOf(engine, server, found), async (client) => ({
    ...(await inspect(engine, server, failoverNotesOf(engine, found, ctx), client)),
    hasCertificate: isCertificateOf(server, podCertificateOf(client)),
  }));
  const diff = [
    server.running ? null : 'it should not run',
    seen.hasCertificate ? null : 'certificate',
    ...[differs, seen.differs],
  ].filter((one) => one !== null);
  return {
    state: 'present',
    upToDate: diff.length === 0,
    ...(diff.length > 0 && { diff: diff.join(', ') }),
    observed: {
      ...{ state: 'running', reason: found.reason, storage_used_bytes: seen.storageUsedBytes },
      ...{ full: seen.full, replication_lag_seconds: null },
    },
  };
}

/** One step. @throws DriverError unsupported, invalid, transient with what the cluster waits for */
export async function ensureFailover(
  engine: PodEngine,
  r: Desired<ServerSpec>,
  ctx: DriverContext,
): Promise<{ ref: { driver: string; name: string }; requeueMs?: number }> {
  const server = serverOf(r);
  requireSupported(server);
  const ref = { driver: engine.name, name: server.id };
  const found = await ensureFailoverServer(engine, server, ctx);
  engine.logs.follow(server.id, { pod: found.primary });
  if (found.state === 'stopped') return server.running ? { ref, requeueMs: SOON_MS } : { ref };
  if (found.state === 'running' && found.reason !== null) await hastenReplicas(engine, server, found);
  // What is written before would wait for it.
  if (!server.running || found.state !== 'running' || found.ready < DURABLE) {
    if (found.reason !== null) throw new DriverError('transient', found.reason, 5_000);
    return { ref, requeueMs: SOON_MS };
  }
  const isCurrent = await configurePrimary(engine, server, found, ctx).catch((error: unknown) => {
    if (error instanceof NotReady) return null;
    throw error;
  });
  if (isCurrent === null) return { ref, requeueMs: SOON_MS };
  return isCurrent ? { ref } : { ref, requeueMs: CERTIFICATE_MS };
}

/**
 * A new replica begins with a checkpoint of the primary, which takes most of `checkpoint_timeout`. Whoever asks for
 * another one hurries it on (PostgreSQL, "CHECKPOINT").
 */
async function hastenReplicas(engine: PodEngine, server: DatabaseServer, found: FailoverServer): Promise<void> {
  const waiting = "select from pg_stat_progress_basebackup where phase = 'waiting for checkpoint to finish'";
  await withPod(podAddressOf(engine, server, found), async ({ session }) => {
    if ((await session.query(waiting)).rowCount !== 0) await session.query('checkpoint');
  }).catch((error: unknown) => {
    if (!(error instanceof NotReady)) throw error;
  });
}

/** @returns false while the primary has its old certificate */
function configurePrimary(
  engine: PodEngine,
  server: DatabaseServer,
  found: FailoverServer,
  ctx: DriverContext,
): Promise<boolean> {
  return withPod(podAddressOf(engine, server, found), async (client) => {
    requireImageVersion(engine, server, await podVersionOf(client));
    await openToReplicas(client.session);
    const isCurrent = isCertificateOf(server, podCertificateOf(client));
    const notes = failoverNotesOf(engine, found, ctx);
    await configure(engine, server, notes, isCurrent ? null : 'certificate', client, OPERATOR_ROLES);
    return isCurrent;
  });
}

/** A former primary follows the new one by pg_rewind, which connects to this database. */
async function openToReplicas(session: Session): Promise<void> {
  const { rows } = await session.query<{ open: boolean }>(
    "select has_database_privilege('streaming_replica', 'postgres', 'connect') as open",
  );
  if (rows[0]?.open !== true) await session.query('grant connect on database postgres to streaming_replica');
}

function isCertificateOf({ tls }: DatabaseServer, served: Buffer): boolean {
  return served.equals(new X509Certificate(tls.certificate).raw);
}

function requireSupported({ replica_of, users }: DatabaseServer): void {
  if (replica_of !== null) throw unsupported('Databases in the cluster have no replicas.');
  const reserved = users.find(({ username }) => OPERATOR_ROLES.includes(username) || username.startsWith('cnpg_'));
  if (reserved !== undefined)
    throw new DriverError('invalid', `The name ${JSON.stringify(reserved.username)} is reserved by CloudNativePG.`);
}
