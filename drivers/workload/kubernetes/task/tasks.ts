// Tasks on Kubernetes: a Job for each, whose name is the id of the task. Its pod stays after the end of the program, so
// that its output and its exit code can be read, until the platform removes the Job.
import type { Job } from 'kubernetes-types/batch/v1';
import type { Pod } from 'kubernetes-types/core/v1';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { hasCode } from '../../../kubernetes/client/failure';
import { resourceTypes } from '../../../kubernetes/client/resource_type';
import { TASK_LOG_PREFIX, type Task, type TaskRef, type TaskRuntime, type TaskState } from '../../task';
import { ensureProject, type ProjectOptions } from '../namespace';
import { applyOwn, keyOf, listForSweep, removeOwn } from '../own_object';
import { LABEL, selectorText } from '../names';
import { logSourceOf, type PodLogs } from '../pod_logs';
import { attachToTask } from './attach';
import { orderOnce } from './control';
import { enterInstance } from './enter';
import { taskKeyOf, taskObjects, taskSelectorOf } from './job';
import { hasProgramEnded, podRefusalOf, startWarningOf, taskStateOf } from './state';

/** Annotation of a pod: its deadline was counted from the start of the program. */
const TIMEOUT = 'platform-api/timeout-seconds';
/** The cluster makes pods of a Job at once; why it does not, its events tell. */
const WITHOUT_POD_MS = 3_000;
/** Until a pod that says nothing of itself is asked for its events. */
const QUIET_MS = 10_000;
const HANG_UP_MS = 5_000;
const OBJECTS = [resourceTypes.jobs, resourceTypes.secrets, resourceTypes.networkPolicies];

export function openKubernetesTasks(options: ProjectOptions, logs: PodLogs): TaskRuntime {
  return {
    start: (task, ctx) => startTask(options, task, ctx),
    inspect: (ref, ctx) => inspectTask(options, logs, ref, ctx),
    stop: (ref, ctx) => stopTask(options, ref, ctx),
    destroy: (ref, ctx) => removeOwn(options, OBJECTS, taskSelectorOf(options.prefix, ref), ctx),
    untilRead: (id) => logs.untilRead(`${TASK_LOG_PREFIX}${id}`),
    list: (ctx) => listTasks(options, ctx),
    attach: async (ref, input, ctx) => attachToTask(options, ref, input, await podOf(options, ref, ctx)),
    enter: (command, ctx) => enterInstance(options, command, ctx),
  };
}

async function startTask(options: ProjectOptions, task: Task, ctx: DriverContext): Promise<void> {
  const { variables, pull, documents, egress, job } = taskObjects(options.prefix, task);
  await ensureProject(options, task.project_id, ctx);
  await applyOwn(options, resourceTypes.secrets, variables, ctx);
  await applyOwn(options, resourceTypes.secrets, pull, ctx);
  if (documents) await applyOwn(options, resourceTypes.secrets, documents, ctx);
  if (egress) await applyOwn(options, resourceTypes.networkPolicies, egress, ctx);
  job.spec!.template.metadata!.annotations = { [TIMEOUT]: String(task.timeout_seconds) };
  await applyOwn(options, resourceTypes.jobs, job, ctx);
}

async function inspectTask(
  options: ProjectOptions,
  logs: PodLogs,
  ref: TaskRef,
  ctx: DriverContext,
): Promise<TaskState | null> {
  const { client, prefix } = options;
  const job = await client.get(resourceTypes.jobs, taskKeyOf(prefix, ref), ctx);
  if (job === null || job.metadata?.labels?.[LABEL.run] !== ref.id) return null;
  const pod = await podOf(options, ref, ctx);
  const state = taskStateOf(job, pod);
  // The watch may come later.
  if (pod) openTaskLog(logs, pod, ref.id);
  if (state.state === 'running' && pod) await countFromStart(options, pod, state.started_at, ctx);
  if (state.state !== 'waiting' || state.reason !== null) return state;
  if (pod === null)
    return isOlder(job, WITHOUT_POD_MS) ? { ...state, reason: podRefusalOf(await client.eventsOf(job, ctx)) } : state;
  return isOlder(job, QUIET_MS) ? { ...state, reason: startWarningOf(await client.eventsOf(pod, ctx)) } : state;
}

/** Its output is copied from then on. Repeatable. */
export function openTaskLog(logs: PodLogs, pod: Pod, id: string): void {
  const source = logSourceOf(pod);
  if (source) logs.open({ ...source, key: `${TASK_LOG_PREFIX}${id}` });
  if (hasProgramEnded(pod)) logs.complete(pod.metadata?.uid ?? '');
}

/** A clock of the cluster that is far ahead of ours does not count. */
function isOlder({ metadata }: Job, ms: number): boolean {
  return Math.abs(Date.now() - Date.parse(metadata?.creationTimestamp ?? '')) > ms;
}

async function podOf({ client, prefix }: ProjectOptions, ref: TaskRef, ctx: DriverContext): Promise<Pod | null> {
  const { namespace } = taskKeyOf(prefix, ref);
  const scope = { namespace, labelSelector: selectorText(taskSelectorOf(prefix, ref)) };
  return (await client.list(resourceTypes.pods, scope, ctx)).items[0] ?? null;
}

/** The cluster counts from before the image is pulled: once the program runs, its deadline is moved. */
async function countFromStart(options: ProjectOptions, pod: Pod, startedAt: string, ctx: DriverContext): Promise<void> {
  const timeout = Number(pod.metadata?.annotations?.[TIMEOUT]);
  const before = Date.parse(startedAt) - Date.parse(pod.status?.startTime ?? startedAt);
  const seconds = Math.max(1, timeout + Math.ceil(before / 1000));
  if (!((pod.spec?.activeDeadlineSeconds ?? Infinity) > seconds)) return;
  await setDeadline(options, pod, seconds, ctx);
}

/** @throws nothing for a pod that has gone */
async function setDeadline({ client }: ProjectOptions, pod: Pod, seconds: number, ctx: DriverContext): Promise<void> {
  const change = { spec: { activeDeadlineSeconds: seconds } };
  await client.patch(resourceTypes.pods, keyOf(pod), change, ctx).catch((error: unknown) => {
    if (!hasCode(error, 'not_found')) throw error;
  });
}

/**
 * A deadline that has passed: the node sends the signal and kills after the grace time, and the pod stays with its
 * output and its exit code. Deleted pods take both along.
 */
async function stopTask(options: ProjectOptions, ref: TaskRef, ctx: DriverContext): Promise<void> {
  const pod = await podOf(options, ref, ctx);
  if (pod === null || pod.spec?.activeDeadlineSeconds === 1) return;
  const isTerminal = pod.spec?.containers[0]?.tty === true;
  if (isTerminal && pod.status?.containerStatuses?.[0]?.state?.running) await hangUp(options, pod);
  await setDeadline(options, pod, 1, ctx);
}

/** Shells at terminals ignore SIGTERM. */
async function hangUp({ client }: ProjectOptions, pod: Pod): Promise<void> {
  await orderOnce(client, pod, 'signal HUP', HANG_UP_MS).catch((error: unknown) => {
    // It is killed a little later.
    if (!(error instanceof DriverError)) throw error;
  });
}

async function listTasks(options: ProjectOptions, ctx: DriverContext): Promise<string[]> {
  const found = new Set<string>();
  for await (const { metadata } of listForSweep(options, OBJECTS, { [LABEL.run]: '' }, ctx))
    found.add(metadata?.labels?.[LABEL.run] ?? '');
  return [...found];
}
