// Where the process of a database server runs when that is a pod: the counterpart of drivers/hosted_server/unit.ts and
// server_directory.ts, without any engine. Calls are repeated after a crash; what is there decides what is next.
import { isDeepStrictEqual } from 'node:util';
import type { StatefulSet } from 'kubernetes-types/apps/v1';
import type { PersistentVolumeClaim, Pod, Service } from 'kubernetes-types/core/v1';
import { DriverError, type DriverContext, type Owned } from '../../../core/driver';
import { hasCode } from '../../kubernetes/client/failure';
import { parseQuantity } from '../../kubernetes/client/quantity';
import { resourceTypes, type KubernetesObject, type ResourceType } from '../../kubernetes/client/resource_type';
import {
  classOf,
  lastEvent,
  requireClass,
  requireGrowingClass,
  WITHOUT_LIMIT,
  type ClaimOptions,
} from '../../workload/kubernetes/claims';
import { LABEL, selectorText } from '../../workload/kubernetes/names';
import { ensureProject } from '../../workload/kubernetes/namespace';
import { applyOver, isInItsProject, isOwn, keyOf, listForSweep } from '../../workload/kubernetes/own_object';
import { refusalSentence } from '../../workload/kubernetes/project_quota';
import type { DatabaseServer } from '../../database';
import {
  configurationSecret,
  dataClaim,
  serverObjectMetadata,
  serverService,
  serverStatefulSet,
  APPLIED,
  type PodProgram,
} from './objects';
import { stateOfServerPod, type ServerPodState } from './pod_state';

/** A server as the cluster has it. */
export interface ServerPod {
  statefulSet: StatefulSet;
  /** null: none runs, or it is only being made. */
  pod: Pod | null;
  state: ServerPodState['state'] | 'stopped';
  reason: string | null;
  /** Where it answers; null while it does not run. */
  address: string | null;
}

export const FOREIGN =
  'The cluster has an object with the name of this database server that this platform did not create. Nothing was ' +
  'changed.';
const CLAIM_GONE =
  'The cluster has removed the volume of the database, or has lost its disk. Restore a backup, or restore the volume ' +
  'in the cluster.';
export const NOTE = 'platform-api/note-';
/** Annotation of a claim: data are being written to it that no server has started with yet. */
export const FILLING = 'platform-api/filling';
/** Annotation of a Cluster: `on` while it should have no pods (CloudNativePG, "Declarative Hibernation"). */
export const HIBERNATION = 'cnpg.io/hibernation';
const { failoverClusters, jobs, networkPolicies, statefulSets, secrets, services, persistentVolumeClaims, pods } =
  resourceTypes;
/** In the order in which they go: first what would start others again. */
const OF_SERVERS: readonly ResourceType<KubernetesObject>[] = [
  ...[failoverClusters, statefulSets, jobs, services, secrets, networkPolicies],
];

/** Read-only. 'absent' where it has no StatefulSet. */
export async function findServerPod(
  options: ClaimOptions,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<ServerPod | 'absent' | 'foreign'> {
  const place = serverObjectMetadata(options.prefix, server);
  const statefulSet = await options.client.get(statefulSets, place, ctx);
  if (statefulSet === null) return 'absent';
  if (!isOwn(options, statefulSet)) return 'foreign';
  return withPod(options, statefulSet, ctx);
}

/** @throws DriverError conflict */
export async function requireServerPod(
  options: ClaimOptions,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<ServerPod> {
  const found = await findServerPod(options, server, ctx);
  if (typeof found !== 'string') return found;
  throw new DriverError('conflict', found === 'foreign' ? FOREIGN : 'The server does not exist in the cluster.');
}

/** Whether its pod is of the StatefulSet as it is now, not of one before. */
export function isPodCurrent({ statefulSet, pod }: ServerPod): boolean {
  const { metadata, status } = statefulSet;
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) return false;
  const revision = pod?.metadata?.labels?.['controller-revision-hash'];
  return revision !== undefined && revision === status?.updateRevision;
}

/** Whether the server is what was applied last, and nobody has changed its specification since. */
export function isPodApplied(found: ServerPod, desired: StatefulSet): boolean {
  const { annotations, generation } = found.statefulSet.metadata ?? {};
  return (
    annotations?.[APPLIED] === desired.metadata?.annotations?.[APPLIED] &&
    readPodNote(found, 'generation') === generation
  );
}

/**
 * Applies all objects of a server whose claim exists, and says what its pod is then. @throws DriverError conflict for
 * somebody else's objects, transient with the reason where the cluster cannot start it
 */
export async function ensureServerPod(
  options: ClaimOptions,
  server: DatabaseServer,
  program: PodProgram,
  ctx: DriverContext,
): Promise<ServerPod> {
  const place = serverObjectMetadata(options.prefix, server);
  const secret = configurationSecret(place, program);
  const presentSecret = await options.client.get(secrets, place, ctx);
  if (presentSecret === null || !isDeepStrictEqual(presentSecret.data, secret.data))
    await applyOver(options, secrets, presentSecret, secret, ctx);
  await ensureService(options, serverService(place, program), ctx);
  const desired = serverStatefulSet(place, server, program);
  const present = await findServerPod(options, server, ctx);
  if (present === 'foreign') throw new DriverError('conflict', FOREIGN);
  const isToRestart = present !== 'absent' && isStuck(present);
  if (present !== 'absent' && isPodApplied(present, desired) && !isToRestart) return present;
  const spec = isToRestart ? { ...desired.spec!, replicas: 0 } : desired.spec;
  const before = present === 'absent' ? null : present.statefulSet;
  const applied = await applyOver(options, statefulSets, before, { ...desired, spec }, ctx);
  const found = await withPod(options, applied, ctx);
  // The cluster counts changes of the specification: another number later is somebody else's change.
  if (!isToRestart) await writePodNote(options, found, 'generation', applied.metadata?.generation, ctx);
  return found;
}

/** Written only where it differs: it is looked at with each poll. */
export async function ensureService(options: ClaimOptions, service: Service, ctx: DriverContext): Promise<void> {
  const present = await options.client.get(services, keyOf(service), ctx);
  const { selector, ports } = present?.spec ?? {};
  const [port, desired] = [ports?.[0], service.spec?.ports?.[0]];
  const isSame = port?.port === desired?.port && port?.targetPort === desired?.targetPort && ports?.length === 1;
  if (isSame && isDeepStrictEqual(selector, service.spec?.selector)) return;
  await applyOver(options, services, present, service, ctx);
}

/**
 * Of a StatefulSet whose template was changed, a pod that does not become ready is never replaced
 * (kubernetes.io, "StatefulSets", Forced rollback): it is scaled to nothing once.
 */
function isStuck(server: ServerPod): boolean {
  const { statefulSet, pod, state } = server;
  if (pod === null || state === 'running' || pod.metadata?.deletionTimestamp !== undefined) return false;
  const isSeen = (statefulSet.status?.observedGeneration ?? 0) >= (statefulSet.metadata?.generation ?? 0);
  return isSeen && !isPodCurrent(server);
}

/**
 * The claim of the data, of at least this size.
 * @throws DriverError conflict where it is gone, unsupported where its class cannot grow
 */
export async function ensureClaim(
  options: ClaimOptions,
  server: DatabaseServer,
  { name, bytes }: { name: string; bytes: number },
  ctx: DriverContext,
): Promise<void> {
  const place = serverObjectMetadata(options.prefix, server);
  const present = await options.client.get(persistentVolumeClaims, { ...place, name }, ctx);
  if (present === null) {
    await ensureProject(options, server.network ?? '', ctx);
    const storageClassName = (await requireClass(options, ctx)).metadata?.name ?? '';
    await applyOver(options, persistentVolumeClaims, null, dataClaim(place, name, { storageClassName, bytes }), ctx);
    return;
  }
  if (!isOwn(options, present)) throw new DriverError('conflict', FOREIGN);
  if (isLost(present)) throw new DriverError('conflict', CLAIM_GONE);
  const { storageClassName = '', resources } = present.spec ?? {};
  if ((parseQuantity(resources?.requests?.storage ?? '') ?? 0) >= bytes) return;
  await requireGrowingClass(options, present, ctx);
  const claim = dataClaim(place, name, { storageClassName, bytes });
  await applyOver(options, persistentVolumeClaims, present, claim, ctx);
}

/** Scales to nothing. @returns whether no pod is left */
export async function stopServerPod(options: ClaimOptions, serverId: string, ctx: DriverContext): Promise<boolean> {
  for (const found of await listOf(options, failoverClusters, serverId, ctx))
    if (found.metadata?.annotations?.[HIBERNATION] !== 'on')
      await options.client.patch(
        failoverClusters,
        keyOf(found),
        { metadata: { annotations: { [HIBERNATION]: 'on' } } },
        ctx,
      );
  for (const found of await listOf(options, statefulSets, serverId, ctx))
    if (found.spec?.replicas !== 0)
      await options.client.patch(statefulSets, keyOf(found), { spec: { replicas: 0 } }, ctx);
  const left = await listOf(options, pods, serverId, ctx);
  return left.every(({ status }) => status?.phase === 'Succeeded');
}

/** Removes the server with its data. @returns whether nothing is left */
export async function removeServerPod(options: ClaimOptions, serverId: string, ctx: DriverContext): Promise<boolean> {
  for (const type of OF_SERVERS)
    for (const found of await listOf(options, type, serverId, ctx))
      await options.client.remove(type, keyOf(found), { propagation: 'Background', uid: found.metadata?.uid }, ctx);
  if ((await listOf(options, pods, serverId, ctx)).length > 0) return false;
  for (const claim of await listOf(options, persistentVolumeClaims, serverId, ctx))
    await options.client.remove(persistentVolumeClaims, keyOf(claim), { uid: claim.metadata?.uid }, ctx);
  return (await listOf(options, persistentVolumeClaims, serverId, ctx)).length === 0;
}

/** Removes the claims of a server but for this one. Their disks are there until the last pod with them has ended. */
export async function removeOtherClaims(
  options: ClaimOptions,
  server: DatabaseServer,
  kept: string,
  ctx: DriverContext,
): Promise<void> {
  for (const claim of await listOf(options, persistentVolumeClaims, server.id, ctx))
    if (claim.metadata?.name !== kept)
      await options.client.remove(persistentVolumeClaims, keyOf(claim), { uid: claim.metadata?.uid }, ctx);
}

/** Whether a claim of the server is there, and is not being removed. One that is only being filled is none. */
export async function hasClaim(options: ClaimOptions, serverId: string, ctx: DriverContext): Promise<boolean> {
  const claims = await listOf(options, persistentVolumeClaims, serverId, ctx);
  return claims.some((claim) => !isLost(claim) && claim.metadata?.annotations?.[FILLING] === undefined);
}

/** Servers that the cluster has, also in part. */
export async function* listServerPods(options: ClaimOptions, driver: string, ctx: DriverContext): AsyncIterable<Owned> {
  const ids = new Set<string>();
  const labels = { [LABEL.database]: '' };
  for await (const { metadata } of listForSweep(options, [statefulSets, persistentVolumeClaims], labels, ctx))
    ids.add(metadata?.labels?.[LABEL.database] ?? '');
  for (const id of ids) yield { ref: { driver, name: id }, owner_id: id };
}

/**
 * Name of the claim that the server uses. Where its StatefulSet was removed by somebody, the one that is left: not the
 * one that new data are still written to. @param first name of the first claim of a server
 */
export async function claimNameFor(
  options: ClaimOptions,
  server: DatabaseServer,
  found: ServerPod | 'absent' | 'foreign',
  ctx: DriverContext,
): Promise<string> {
  if (typeof found !== 'string') return claimNameOf(found.statefulSet);
  const claims = await listOf(options, persistentVolumeClaims, server.id, ctx);
  const left = claims.find(({ metadata }) => metadata?.annotations?.[FILLING] === undefined);
  return left?.metadata?.name ?? serverObjectMetadata(options.prefix, server).name;
}

/** A note about a server, as an annotation of its StatefulSet; null where there is none. */
export function readPodNote<T>({ statefulSet }: ServerPod, name: string): T | null {
  const text = statefulSet.metadata?.annotations?.[`${NOTE}${name}`];
  return text === undefined ? null : (JSON.parse(text) as T);
}

/** Applying the StatefulSet leaves it: it is a field of another operation of the same manager. */
export async function writePodNote(
  options: ClaimOptions,
  server: ServerPod,
  name: string,
  note: unknown,
  ctx: DriverContext,
): Promise<void> {
  const annotations = { [`${NOTE}${name}`]: JSON.stringify(note) };
  const change = { metadata: { annotations } };
  server.statefulSet = await options.client.patch(statefulSets, keyOf(server.statefulSet), change, ctx);
}

async function withPod(options: ClaimOptions, statefulSet: StatefulSet, ctx: DriverContext): Promise<ServerPod> {
  const [pod = null] = await listOf(options, pods, statefulSet.metadata?.labels?.[LABEL.database] ?? '', ctx);
  if (pod === null && statefulSet.spec?.replicas === 0)
    return { statefulSet, pod, state: 'stopped', reason: null, address: null };
  if (pod === null)
    return { statefulSet, pod, state: 'starting', reason: await refusalOf(options, statefulSet, ctx), address: null };
  const running = stateOfServerPod(pod, null);
  const { state, reason } =
    running.state === 'running' ? running : stateOfServerPod(pod, await boundClass(options, statefulSet, ctx));
  const waits = state === 'starting' && reason === null ? await claimReason(options, statefulSet, ctx) : null;
  const address = state === 'running' ? (pod.status?.podIP ?? null) : null;
  return { statefulSet, pod, state, reason: reason ?? waits, address };
}

/** The class of the disk, where its disks stay on one machine. */
async function boundClass(options: ClaimOptions, statefulSet: StatefulSet, ctx: DriverContext): Promise<string | null> {
  const claim = await claimOf(options, statefulSet, ctx);
  const storage = claim && (await classOf(options, claim, ctx));
  return storage && WITHOUT_LIMIT.has(storage.provisioner) ? (storage.metadata?.name ?? '') : null;
}

/** Why there is no disk yet; a class may make it only for the first pod. */
async function claimReason(
  options: ClaimOptions,
  statefulSet: StatefulSet,
  ctx: DriverContext,
): Promise<string | null> {
  const claim = await claimOf(options, statefulSet, ctx);
  if (claim === null || claim.status?.phase === 'Bound') return null;
  return `The cluster has no disk for the database yet.${await lastEvent(options, claim, ctx)}`;
}

function claimOf(
  { client }: ClaimOptions,
  { metadata, spec }: StatefulSet,
  ctx: DriverContext,
): Promise<PersistentVolumeClaim | null> {
  const name = claimNameOf({ spec });
  return client.get(persistentVolumeClaims, { namespace: metadata?.namespace, name }, ctx);
}

function claimNameOf({ spec }: StatefulSet): string {
  const volumes = spec?.template.spec?.volumes ?? [];
  return volumes.find((one) => one.persistentVolumeClaim)?.persistentVolumeClaim?.claimName ?? '';
}

/** Why its controller makes no pod, as a quota. */
async function refusalOf(
  { client }: ClaimOptions,
  statefulSet: StatefulSet,
  ctx: DriverContext,
): Promise<string | null> {
  const refused = (await client.eventsOf(statefulSet, ctx)).filter(({ reason }) => reason === 'FailedCreate').at(-1);
  const said = /forbidden: .*/.exec(refused?.message ?? '')?.[0].replace(/^forbidden: /, '');
  return said === undefined ? null : refusalSentence(said, 'the database');
}

function isLost({ metadata, status }: PersistentVolumeClaim): boolean {
  return metadata?.deletionTimestamp !== undefined || status?.phase === 'Lost';
}

async function listOf<T extends KubernetesObject>(
  options: ClaimOptions,
  type: ResourceType<T>,
  serverId: string,
  ctx: DriverContext,
): Promise<T[]> {
  const labelSelector = selectorText({ [LABEL.installation]: options.prefix, [LABEL.database]: serverId });
  const { items } = await options.client.list(type, { labelSelector }, ctx).catch((error: unknown) => {
    // Most clusters have no CloudNativePG, or give no rights to it: what it has made has pods and claims, too.
    if (type.apiVersion === failoverClusters.apiVersion && hasCode(error, 'api_absent', 'forbidden'))
      return { items: [] };
    throw error;
  });
  return items.filter((object) => isInItsProject(options, object));
}
