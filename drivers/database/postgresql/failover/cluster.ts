// Where a PostgreSQL with automatic failover runs: its Cluster as CloudNativePG has it, and the pod of its primary.
import { isDeepStrictEqual } from 'node:util';
import type { Pod } from 'kubernetes-types/core/v1';
import { DriverError, type DriverContext } from '../../../../core/driver';
import type { DatabaseServer } from '../../../database';
import { hasCode } from '../../../kubernetes/client/failure';
import { parseQuantity } from '../../../kubernetes/client/quantity';
import { resourceTypes, type FailoverCluster } from '../../../kubernetes/client/resource_type';
import { requireClass, requireGrowingClass } from '../../../workload/kubernetes/claims';
import { LABEL, selectorText } from '../../../workload/kubernetes/names';
import { ensureProject } from '../../../workload/kubernetes/namespace';
import { applyOver, isOwn, keyOf } from '../../../workload/kubernetes/own_object';
import { conditionOf, sentence } from '../../../workload/kubernetes/pod_state';
import { APPLIED, serverObjectMetadata } from '../../kubernetes/objects';
import { imageFor, type PodEngine } from '../../kubernetes/pod_engine';
import { isOnLostMachine, stateOfServerPod } from '../../kubernetes/pod_state';
import { ensureService, FOREIGN, HIBERNATION, NOTE } from '../../kubernetes/server_pods';
import type { ServerNotes } from '../../server_notes';
import { failoverObjects, INSTANCE_LABELS, PRIMARY_LABELS } from './objects';

export interface FailoverServer {
  cluster: FailoverCluster;
  /** Instances that are ready. */
  ready: number;
  /** null: there is none that is ready. */
  primary: Pod | null;
  state: 'starting' | 'running' | 'stopped';
  /** Why it does not run, or what it runs without. */
  reason: string | null;
  /** Of the primary. */
  address: string | null;
}

const OPERATOR_ABSENT =
  'The cluster has no CloudNativePG, which makes databases with automatic failover: an operator has to install it, ' +
  'with two commands of docs/KUBERNETES.md.';
const LOST_MACHINE =
  'A machine of the database does not respond. Its instance comes back with it. Where the machine is lost for good, ' +
  'delete the claim and the pod of the instance (`kubectl delete`): another one is made from the primary.';
const FULL_PHASE = 'Not enough disk space';
const FULL = 'A disk of the database is full. Increase `storage_gb`.';
const WRITES_WAIT = 'Writes wait until a second one is.';
const STOPS_WHOLE = 'CloudNativePG stops the database once all of its instances are ready.';
/** Instances that have a row once it is acknowledged. */
export const DURABLE = 2;
const GENERATION = 'generation';
const { failoverClusters, networkPolicies, persistentVolumeClaims, pods, secrets } = resourceTypes;

/** Read-only. 'absent' also where the cluster has no CloudNativePG. */
export async function findFailoverServer(
  engine: PodEngine,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<FailoverServer | 'absent' | 'foreign'> {
  const cluster = await findCluster(engine, server, ctx);
  if (cluster === null) return 'absent';
  if (!isOwn(engine, cluster)) return 'foreign';
  return withInstances(engine, cluster, ctx);
}

/** @throws DriverError conflict */
export async function requireFailoverServer(
  engine: PodEngine,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<FailoverServer> {
  const found = await findFailoverServer(engine, server, ctx);
  if (typeof found !== 'string') return found;
  throw new DriverError('conflict', found === 'foreign' ? FOREIGN : 'The server does not exist in the cluster.');
}

/** Whether it is what was applied last, and nobody has changed its specification since. */
export function isFailoverApplied({ cluster }: FailoverServer, desired: FailoverCluster): boolean {
  const { annotations, generation } = cluster.metadata ?? {};
  const isSame = [APPLIED, HIBERNATION].every((name) => annotations?.[name] === desired.metadata?.annotations?.[name]);
  return isSame && annotations?.[`${NOTE}${GENERATION}`] === JSON.stringify(generation);
}

/** What it should be in the cluster. @throws DriverError unsupported, conflict */
export async function desiredObjects(
  engine: PodEngine,
  server: DatabaseServer,
  present: FailoverServer | null,
  ctx: DriverContext,
): Promise<ReturnType<typeof failoverObjects>> {
  const image = imageFor(engine, server, present?.cluster.spec?.imageName);
  requireTag(image, server);
  // The claims that are there keep theirs.
  const storageClass =
    present?.cluster.spec?.storage.storageClass ?? (await requireClass(engine, ctx)).metadata?.name ?? '';
  return failoverObjects(engine, server, { image, storageClass });
}

/**
 * Applies all objects of a server. @throws DriverError conflict for somebody else's objects, transient where the
 * cluster has no operator
 */
export async function ensureFailoverServer(
  engine: PodEngine,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<FailoverServer> {
  const found = await findFailoverServer(engine, server, ctx);
  if (found === 'foreign') throw new DriverError('conflict', FOREIGN);
  const present = found === 'absent' ? null : found;
  const { secret, service, policy, cluster } = await desiredObjects(engine, server, present, ctx);
  if (present === null) await ensureProject(engine, server.network ?? '', ctx);
  const presentSecret = await engine.client.get(secrets, keyOf(secret), ctx);
  if (presentSecret === null || !isDeepStrictEqual(presentSecret.data, secret.data))
    await applyOver(engine, secrets, presentSecret, secret, ctx);
  await ensureService(engine, service, ctx);
  const presentPolicy = await engine.client.get(networkPolicies, keyOf(policy), ctx);
  if (presentPolicy === null) await applyOver(engine, networkPolicies, null, policy, ctx);
  if (present !== null && isFailoverApplied(present, cluster)) return present;
  if (present !== null) await growClaims(engine, server, cluster, ctx);
  const applied = await applyOver(engine, failoverClusters, present?.cluster ?? null, cluster, ctx).catch(throwAbsent);
  // The cluster counts changes of the specification: another number later is somebody else's change.
  const generation = applied.metadata?.generation;
  return withInstances(engine, await annotate(engine, applied, { [GENERATION]: generation }, ctx), ctx);
}

/** The operator grows none while one of them is full, which stops its instance. */
async function growClaims(
  engine: PodEngine,
  server: DatabaseServer,
  { spec }: FailoverCluster,
  ctx: DriverContext,
): Promise<void> {
  const { namespace } = serverObjectMetadata(engine.prefix, server);
  const storage = spec?.storage.size ?? '';
  const labelSelector = selectorText({ [LABEL.installation]: engine.prefix, [LABEL.database]: server.id });
  for (const claim of (await engine.client.list(persistentVolumeClaims, { namespace, labelSelector }, ctx)).items) {
    const has = parseQuantity(claim.spec?.resources?.requests?.storage ?? '') ?? 0;
    if (has >= (parseQuantity(storage) ?? 0)) continue;
    await requireGrowingClass(engine, claim, ctx);
    const change = { spec: { resources: { requests: { storage } } } };
    await engine.client.patch(persistentVolumeClaims, keyOf(claim), change, ctx);
  }
}

export function failoverNotesOf(engine: PodEngine, found: FailoverServer, ctx: DriverContext): ServerNotes {
  return {
    readNote: <T>(name: string) => {
      const text = found.cluster.metadata?.annotations?.[`${NOTE}${name}`];
      return Promise.resolve(text === undefined ? null : (JSON.parse(text) as T));
    },
    writeNote: async (name, note) => {
      found.cluster = await annotate(engine, found.cluster, { [name]: note }, ctx);
    },
  };
}

function annotate(
  { client }: PodEngine,
  cluster: FailoverCluster,
  notes: Record<string, unknown>,
  ctx: DriverContext,
): Promise<FailoverCluster> {
  const annotations = Object.fromEntries(
    Object.entries(notes).map(([name, note]) => [`${NOTE}${name}`, JSON.stringify(note)]),
  );
  return client.patch(failoverClusters, keyOf(cluster), { metadata: { annotations } }, ctx);
}

async function findCluster(
  { client, prefix }: PodEngine,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<FailoverCluster | null> {
  return client.get(failoverClusters, serverObjectMetadata(prefix, server), ctx).catch((error: unknown) => {
    if (hasCode(error, 'api_absent')) return null;
    throw error;
  });
}

function throwAbsent(error: unknown): never {
  throw hasCode(error, 'api_absent') ? new DriverError('transient', OPERATOR_ABSENT, 5_000) : error;
}

/** The operator reads the version from it. @throws DriverError unsupported */
function requireTag(image: string, { version }: DatabaseServer): void {
  const tag = /:([^:/@]+)(@.*)?$/.exec(image)?.[1] ?? '';
  if (`${tag}.`.startsWith(`${version}.`) || tag.startsWith(`${version}-`)) return;
  throw new DriverError(
    'unsupported',
    `The image of postgresql ${version} in DATABASE_IMAGES has the tag \`${tag}\`. With automatic failover it has to ` +
      `begin with the version, as in \`${version}.4\`.`,
  );
}

async function withInstances(engine: PodEngine, cluster: FailoverCluster, ctx: DriverContext): Promise<FailoverServer> {
  const database = cluster.metadata?.labels?.[LABEL.database] ?? '';
  const { namespace, annotations } = cluster.metadata ?? {};
  const labelSelector = selectorText({ [LABEL.installation]: engine.prefix, [LABEL.database]: database });
  const listed = await engine.client.list(pods, { namespace, labelSelector }, ctx);
  // Those of its Jobs that are done stay a while.
  const items = listed.items.filter((pod) => pod.status?.phase !== 'Succeeded');
  const isStopped = annotations?.[HIBERNATION] === 'on';
  if (isStopped && items.length === 0)
    return { cluster, ready: 0, primary: null, state: 'stopped', reason: null, address: null };
  const instances = items.filter((pod) => hasLabels(pod, INSTANCE_LABELS) && isReady(pod));
  const primary = instances.find((pod) => isPrimary(pod, cluster)) ?? null;
  const address = primary?.status?.podIP ?? null;
  const [ready, isRunning] = [instances.length, address !== null];
  const why = reasonOf(cluster, items, { ready, isRunning });
  const reason = isStopped ? waitsToStop(cluster, why) : why;
  return { cluster, ready, primary, address, state: isRunning ? 'running' : 'starting', reason };
}

function isPrimary(pod: Pod, { status }: FailoverCluster): boolean {
  return hasLabels(pod, PRIMARY_LABELS) && pod.metadata?.name === status?.currentPrimary;
}

function isReady(pod: Pod): boolean {
  return conditionOf(pod, 'Ready')?.status === 'True' && pod.metadata?.deletionTimestamp === undefined;
}

function hasLabels({ metadata }: Pod, labels: Record<string, string>): boolean {
  return Object.entries(labels).every(([name, value]) => metadata?.labels?.[name] === value);
}

/** What one of its pods waits for says more than what the operator waits for. */
function reasonOf(
  { spec, status }: FailoverCluster,
  all: Pod[],
  { ready, isRunning }: { ready: number; isRunning: boolean },
): string | null {
  const desired = spec?.instances ?? 0;
  if (isRunning && ready === desired) return null;
  const phase = [status?.phase, status?.phaseReason].filter(Boolean).join('; ');
  const ofOperator = phase === '' ? null : sentence(`CloudNativePG says: ${phase}`);
  const ofPods = all.some(isOnLostMachine) ? LOST_MACHINE : podReasonOf(all);
  const why = status?.phase === FULL_PHASE ? FULL : (ofPods ?? ofOperator);
  if (!isRunning) return why;
  const missing = `${ready} of ${desired} instances are ready.`;
  return [missing, ready < DURABLE ? WRITES_WAIT : null, why].filter((one) => one !== null).join(' ');
}

/** The operator begins to stop it only where the whole of it is healthy. */
function waitsToStop({ status }: FailoverCluster, why: string | null): string | null {
  const hasBegun = status?.conditions?.some(({ type }) => type === HIBERNATION) ?? false;
  return hasBegun || why === null ? null : `${STOPS_WHOLE} ${why}`;
}

function podReasonOf(all: Pod[]): string | null {
  return all.map((pod) => stateOfServerPod(pod, null).reason).find((reason) => reason !== null) ?? null;
}
