// Workloads on Kubernetes: a Deployment for each process type of a release, in a namespace for each project. What is
// applied carries the label of this installation; objects of the same name without it are never touched.
import { driverContext, type DriverContext } from '../../../core/driver';
import type { Deployment } from 'kubernetes-types/apps/v1';
import type { Pod, Secret } from 'kubernetes-types/core/v1';
import type { Followed } from '../../kubernetes/client/follow';
import { resourceTypes, type ListScope } from '../../kubernetes/client/resource_type';
import type {
  FollowedInstances,
  InstanceListener,
  Workload,
  WorkloadDriver,
  WorkloadInstance,
  WorkloadRef,
  WorkloadState,
} from '../../workload';
import { isLoginFresh, workloadObjects, type WorkloadObjects } from './deployment';
import { correctedFields, ensureImmutable, withDigest } from './drift';
import { fingerprintOf } from './fingerprint';
import { LABEL, selectorOf, selectorText } from './names';
import { ensureProject, type ProjectOptions } from './namespace';
import { openOverview, type Overview } from './overview';
import { applyOver, applyOwn, isInItsProject, keyOf, listForSweep, OF_WORKLOADS, removeOwn } from './own_object';
import { logSourceOf, openPodLogs, type PodLogs } from './pod_logs';
import { instanceOfPod, isPullOverdue } from './pod_state';
import { WATCH_SECONDS } from './pod_routes';
import { measuresPods, openPodUsage, type PodUsage } from './pod_usage';
import { listProjects, removeProject } from './project_removal';
import { isRetryDue, refusalOfInstances, withRetry } from './refused_pods';
import { openKubernetesTasks, openTaskLog } from './task/tasks';

interface Options extends ProjectOptions {
  log(message: string, error: Error): void;
}

/** What somebody changes in a namespace is put back within this time, or a little later. */
const PROJECT_CHECKED_MS = 60_000;
/** Watches are short; all instances are reported again after this time, and after a failure. */
const LISTED_AGAIN_MS = 10_000;
const REMOVED_WITHIN_MS = 10_000;

export function openKubernetesWorkloads(options: Options): WorkloadDriver {
  const closing = new AbortController();
  const checked = new Map<string, number>();
  const logs = openPodLogs(options.client);
  const usage = openPodUsage(options.client, options.prefix);
  const overview = openOverview(options);
  return {
    name: 'kubernetes',
    fingerprint: (ctx) => fingerprintOf(options.client, options.prefix, ctx),
    ensure: (workload, ctx) => ensureWorkload({ ...options, checked }, overview, workload, ctx),
    remove(ref, ctx) {
      overview.forget(ref.id);
      // The Deployment goes at once, so that none of its pods comes back.
      return removeOwn(options, OF_WORKLOADS, selectorOf(options.prefix, ref), ctx);
    },
    list: (ctx) => listWorkloads(options, ctx),
    listProjects: (ctx) => listProjects(options, ctx),
    removeProject: (id, ctx) => removeProject(options, id, ctx),
    async listInstances(ctx) {
      const { items } = await options.client.list(resourceTypes.pods, scopeOf(options), ctx);
      return instancesOf(options, items);
    },
    follow: (listener) => follow(options, { logs, usage }, listener, closing.signal),
    measures: (ctx) => measuresPods(options.client, options.prefix, ctx),
    usage: (ctx) => usage.read(ctx),
    logs,
    tasks: openKubernetesTasks(options, logs),
    close() {
      closing.abort();
      logs.close();
      return Promise.resolve();
    },
  };
}

async function ensureWorkload(
  options: Options & { checked: Map<string, number> },
  overview: Overview,
  workload: Workload,
  ctx: DriverContext,
): Promise<WorkloadState> {
  await checkProject(options, workload.project_id, ctx);
  const objects = workloadObjects(options.prefix, workload);
  const desired = { ...objects, deployment: withDigest(objects.deployment) };
  const unchanged = await overview.unchanged(workload.id, desired, ctx);
  // What stood in its way when the overview was read may be over.
  const isObstructed = unchanged !== null && obstacleOf(unchanged) !== null;
  const present = isObstructed ? await options.client.get(resourceTypes.deployments, keyOf(unchanged), ctx) : unchanged;
  if (present && !isRetryDue(present)) return { ...stateOf(present), corrected: [] };
  overview.forget(workload.id);
  try {
    return await applyWorkload(options, workload, desired, ctx);
  } finally {
    // What was read meanwhile may be from before.
    overview.forget(workload.id);
  }
}

async function applyWorkload(
  options: Options,
  { project_id }: Workload,
  { variables, pull, documents, egress, disruption, deployment }: WorkloadObjects,
  ctx: DriverContext,
): Promise<WorkloadState> {
  const present = await options.client.get(resourceTypes.deployments, keyOf(deployment), ctx);
  if (present === null) await ensureProject(options, project_id, ctx);
  await ensurePullSecret(options, pull, ctx);
  const isOtherSecret = await ensureImmutable(options, variables, ctx);
  if (documents) await applyOwn(options, resourceTypes.secrets, documents, ctx);
  if (egress) await applyOwn(options, resourceTypes.networkPolicies, egress, ctx);
  if (disruption) await applyOwn(options, resourceTypes.podDisruptionBudgets, disruption, ctx);
  const applied = await applyOver(options, resourceTypes.deployments, present, withRetry(deployment, present), ctx);
  return {
    ...stateOf(applied),
    corrected: [
      ...(isOtherSecret ? ['environment'] : []),
      ...(present === null ? [] : correctedFields(present, deployment, applied)),
    ],
  };
}

/** Of a Deployment that has just been changed, the status is still that of the one before. */
function stateOf(deployment: Deployment): Pick<WorkloadState, 'ready' | 'obstacle'> {
  const { metadata, status } = deployment;
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) return { ready: 0, obstacle: null };
  return { ready: status?.readyReplicas ?? 0, obstacle: obstacleOf(deployment) };
}

/** Once for all workloads of a project. */
async function checkProject(
  options: ProjectOptions & { checked: Map<string, number> },
  projectId: string,
  ctx: DriverContext,
): Promise<void> {
  const { checked } = options;
  if (performance.now() - (checked.get(projectId) ?? -Infinity) < PROJECT_CHECKED_MS) return;
  await ensureProject(options, projectId, ctx);
  checked.set(projectId, performance.now());
}

async function ensurePullSecret(options: Options, secret: Secret, ctx: DriverContext): Promise<void> {
  const present = await options.client.get(resourceTypes.secrets, keyOf(secret), ctx);
  if (!isLoginFresh(present, secret)) await applyOver(options, resourceTypes.secrets, present, secret, ctx);
}

/** Why the cluster creates no pods, or has given up waiting for them. */
function obstacleOf(deployment: Deployment): string | null {
  const refusal = refusalOfInstances(deployment);
  if (refusal !== null) return refusal;
  const progress = deployment.status?.conditions?.find(({ type }) => type === 'Progressing');
  if (progress?.status === 'False' && progress.reason === 'ProgressDeadlineExceeded')
    return 'Its instances did not become ready in the time that the cluster gives them.';
  return null;
}

async function* listWorkloads(options: Options, ctx: DriverContext): AsyncIterable<WorkloadRef> {
  const seen = new Set<string>();
  for await (const { metadata } of listForSweep(options, OF_WORKLOADS, { [LABEL.workload]: '' }, ctx)) {
    const [id = '', project_id = ''] = [metadata?.labels?.[LABEL.workload], metadata?.labels?.[LABEL.project]];
    if (seen.has(id)) continue;
    seen.add(id);
    yield { id, project_id };
  }
}

function follow(
  options: Options,
  { logs, usage }: { logs: PodLogs; usage: PodUsage },
  listener: InstanceListener,
  closing: AbortSignal,
): FollowedInstances {
  const ended = new AbortController();
  let listedAt = -Infinity;
  const pods: Followed<Pod> = options.client.follow(
    resourceTypes.pods,
    scopeOf(options),
    {
      changed(pod) {
        if (!isInItsProject(options, pod)) return;
        const task = pod.metadata?.labels?.[LABEL.run];
        if (task !== undefined) return followTask(logs, listener, pod, task);
        const instance = instanceOfPod(pod);
        if (instance === null) return;
        if (isPullOverdue(pod)) makeAnew(options, pod);
        usage.changed(pod);
        const source = logSourceOf(pod);
        if (source) logs.open(source);
        listener.changed(instance);
      },
      removed(pod) {
        if (!isInItsProject(options, pod)) return;
        const { metadata } = pod;
        usage.removed(metadata?.uid ?? '');
        logs.ended(metadata?.uid ?? '');
        const task = metadata?.labels?.[LABEL.run];
        if (task !== undefined) return listener.taskChanged(task);
        listener.removed(metadata?.uid ?? '');
      },
      // What was removed while the watch was down.
      synchronized() {
        if (performance.now() - listedAt < LISTED_AGAIN_MS) return;
        listedAt = performance.now();
        listener.listed(instancesOf(options, pods.objects.values()));
      },
      failed(error) {
        listedAt = -Infinity;
        options.log('the cluster does not tell about its pods', error);
      },
    },
    AbortSignal.any([closing, ended.signal]),
    { watchSeconds: WATCH_SECONDS },
  );
  return {
    get provenAt() {
      return pods.provenAt;
    },
    stop: () => ended.abort(),
  };
}

/** Its ReplicaSet makes another one at once. */
function makeAnew({ client, log }: Options, pod: Pod): void {
  const removal = { propagation: 'Background', uid: pod.metadata?.uid } as const;
  client
    .remove(resourceTypes.pods, keyOf(pod), removal, driverContext(REMOVED_WITHIN_MS))
    .catch((error: Error) => log('a pod that waits for its image could not be made anew', error));
}

const scopeOf = ({ prefix }: Options): ListScope => ({ labelSelector: selectorText({ [LABEL.installation]: prefix }) });

function instancesOf(options: Options, pods: Iterable<Pod>): WorkloadInstance[] {
  return [...pods].flatMap((pod) => (isInItsProject(options, pod) ? (instanceOfPod(pod) ?? []) : []));
}

function followTask(logs: PodLogs, listener: InstanceListener, pod: Pod, id: string): void {
  openTaskLog(logs, pod, id);
  listener.taskChanged(id);
}
