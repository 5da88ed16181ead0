// What a Job and its pod mean for the task that they are.
import os from 'node:os';
import type { Job } from 'kubernetes-types/batch/v1';
import type { ContainerStateTerminated, Event, Pod } from 'kubernetes-types/core/v1';
import type { Killed } from '../../../runtime';
import type { TaskState } from '../../task';
import { refusalSentence } from '../project_quota';
import { conditionOf, FINAL_IMAGE_REASONS, IMAGE_REASONS, sentence, START_REASONS } from '../pod_state';

const UNSTARTABLE = 'The cluster could not start the command: ';

type Exited = Extract<TaskState, { state: 'exited' }>;

/** @param pod the one of the Job; null where there is none */
export function taskStateOf(job: Job, pod: Pod | null): TaskState {
  if (pod === null) return stateWithoutPod(job);
  const container = pod.status?.containerStatuses?.[0];
  const ended = container?.state?.terminated;
  if (ended) return exitedOf(pod, ended);
  const { phase } = pod.status ?? {};
  if (phase === 'Failed' || phase === 'Succeeded') return endedWithoutContainer(pod);
  const started_at = container?.state?.running?.startedAt;
  if (started_at) return { state: 'running', started_at };
  return waitingOf(pod);
}

/** Whether its program has ended, so that its log is whole once it is read to its end. */
export function hasProgramEnded({ status }: Pod): boolean {
  return status?.containerStatuses?.[0]?.state?.terminated !== undefined;
}

/** Why no pod is made of a Job, as the cluster says it in its events. */
export function podRefusalOf(events: readonly Event[]): string | null {
  const refused = events.findLast(({ reason }) => reason === 'FailedCreate');
  return refused
    ? refusalSentence(sentence((refused.message ?? '').replace(/^Error creating: /, '')), 'the run')
    : null;
}

/** Why a pod that has a machine does not start, as with a volume that cannot be mounted. */
export function startWarningOf(events: readonly Event[]): string | null {
  const message = events.findLast(({ type }) => type === 'Warning')?.message;
  return message ? `The cluster has not started the command yet: ${sentence(message)}` : null;
}

function stateWithoutPod({ status }: Job): TaskState {
  const failed = status?.conditions?.find(({ type, status: is }) => type === 'Failed' && is === 'True');
  if (!failed && !status?.completionTime) return { state: 'waiting', reason: null, is_final: false };
  const at = failed?.lastTransitionTime ?? status?.completionTime ?? new Date().toISOString();
  const killed = failed?.reason === 'DeadlineExceeded' ? 'time' : null;
  const reason = 'The pod of the run was removed from the cluster before its end was recorded.';
  return { state: 'exited', code: null, signal: null, killed, reason, started_at: status?.startTime ?? null, at };
}

function exitedOf(pod: Pod, ended: ContainerStateTerminated): Exited {
  const { exitCode, finishedAt, startedAt, reason } = ended;
  const { code, signal } = outcomeOf(exitCode);
  const at = finishedAt ?? new Date().toISOString();
  const end = { state: 'exited', code, signal, started_at: startedAt ?? null, at } as const;
  if (reason === 'StartError' || reason === 'ContainerCannotRun')
    return { ...end, killed: null, reason: `${UNSTARTABLE}${sentence(ended.message ?? '')}` };
  const killed = killedOf(pod, ended, signal);
  return { ...end, killed, reason: killed === null && code !== 0 ? interruptionOf(pod) : null };
}

/** The kubelet refused it, or its machine was lost before it had started. */
function endedWithoutContainer(pod: Pod): Exited {
  const { reason, message, startTime } = pod.status ?? {};
  const cause = sentence(message ?? reason ?? 'it gave no reason');
  const told = interruptionOf(pod) ?? unstartedReason(pod) ?? `The cluster ended the run: ${cause}`;
  const at = new Date().toISOString();
  return { state: 'exited', code: null, signal: null, killed: null, reason: told, started_at: startTime ?? null, at };
}

/** The deadline has passed before the command ran: that is not the time limit of the run. */
function unstartedReason(pod: Pod): string | null {
  if (pod.status?.reason !== 'DeadlineExceeded') return null;
  const waiting = waitingOf(pod);
  const why = waiting.state === 'waiting' ? waiting.reason : null;
  return why ?? 'The cluster has not started the command in the time that it gives it.';
}

function killedOf(pod: Pod, ended: ContainerStateTerminated, signal: string | null): Killed | null {
  const { reason, message = '' } = pod.status ?? {};
  if (reason === 'DeadlineExceeded') return 'time';
  if (reason === 'Evicted' && /ephemeral/.test(message)) return 'disk';
  // One of several processes may have been killed long before the program ended by itself.
  return ended.reason === 'OOMKilled' && ended.exitCode !== 0 && signal !== 'SIGTERM' ? 'memory' : null;
}

function interruptionOf({ metadata, status }: Pod): string | null {
  const { reason, message } = status ?? {};
  if (reason === 'Evicted') return `The cluster evicted the run: ${sentence(message ?? 'its machine was full')}`;
  if (reason === 'NodeLost' || reason === 'NodeShutdown' || reason === 'Terminated')
    return 'The machine of the run went down.';
  if (metadata?.deletionTimestamp !== undefined) return 'The pod of the run was removed from the cluster.';
  return null;
}

function waitingOf(pod: Pod): TaskState {
  const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting;
  const cause = waiting?.reason ?? '';
  if (IMAGE_REASONS.has(cause)) {
    const said = `The cluster cannot pull the image of the release: ${sentence(waiting?.message ?? cause)}`;
    return waitingFor(said, FINAL_IMAGE_REASONS.has(cause));
  }
  if (START_REASONS.has(cause)) return waitingFor(`${UNSTARTABLE}${sentence(waiting?.message ?? cause)}`, true);
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.status !== 'False') return waitingFor(null);
  const room = sentence(scheduled.message ?? scheduled.reason ?? '');
  return waitingFor(`The cluster has no room for the run yet: ${room}`);
}

function waitingFor(reason: string | null, is_final = false): TaskState {
  return { state: 'waiting', reason, is_final };
}

/** Shells and container engines say 128 + number for a program that a signal ended. */
function outcomeOf(exitCode: number): { code: number | null; signal: string | null } {
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === exitCode - 128)?.[0];
  return signal === undefined ? { code: exitCode, signal: null } : { code: null, signal };
}
