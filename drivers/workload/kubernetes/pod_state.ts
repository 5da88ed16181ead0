// What a pod means for the instance that it is: its status, and the reason as a sentence for users.
import type {
  ContainerStateTerminated,
  ContainerStateWaiting,
  ContainerStatus,
  Pod,
  PodCondition,
  Probe,
} from 'kubernetes-types/core/v1';
import type { WorkloadInstance } from '../../workload';
import { LABEL } from './names';

type Reading = Pick<WorkloadInstance, 'status' | 'reason' | 'fault'>;

/** Pods that wait for one of these do not start by themselves. */
export const IMAGE_REASONS = new Set(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull']);
/** These it does not try again. */
export const FINAL_IMAGE_REASONS = new Set(['InvalidImageName', 'ErrImageNeverPull']);
/** The cluster tries again after 10 seconds, then after twice as long each time. */
const PULLED_WITHIN_MS = 60_000;
export const START_REASONS = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);
const CRASHED_AFTER = 5;
/** Messages of containerd and of Go's clients while a registry is away, as the one of a worker that starts again. */
const REGISTRY_AWAY = new RegExp(
  [
    ...['connection (refused|reset|timed out)', 'no route to host', 'network is unreachable', '\\bEOF\\b'],
    ...['broken pipe', 'server closed idle connection', 'server misbehaving'],
    ...['i/o timeout', 'deadline exceeded', 'Client\\.Timeout', 'handshake timeout', 'unexpected status.*: 5\\d\\d '],
  ].join('|'),
);
/** The pauses of the cluster grow to five minutes: a new pod asks a registry that is back sooner. */
const PULLED_ANEW_MS = 90_000;
/** Exit codes of a program that was asked to end, or was ended: its own one, or 128 and the number of the signal. */
const ENDED_BY_SIGNAL = new Set([0, 130, 137, 143]);
/** Between the last failure of a probe and the end of the grace time. */
const LATE_SECONDS = 10;
const UNHEARD_MACHINE = 'The cluster has not heard from the machine of the instance for some time.';
const LOST_MACHINE = 'The machine of the instance does not respond. Another instance takes its place.';

/** null: not a pod of a workload. */
export function instanceOfPod(pod: Pod): WorkloadInstance | null {
  const { metadata, spec, status } = pod;
  const workload_id = metadata?.labels?.[LABEL.workload];
  if (workload_id === undefined || metadata?.uid === undefined) return null;
  const container = status?.containerStatuses?.[0];
  const address = status?.podIP;
  return {
    uid: metadata.uid,
    workload_id,
    project_id: metadata.labels?.[LABEL.project] ?? '',
    ...readingOf(pod, container),
    restarts: container?.restartCount ?? 0,
    created_at: metadata.creationTimestamp ?? new Date().toISOString(),
    started_at: container?.state?.running?.startedAt ?? null,
    ended_at: (container?.state?.terminated ?? container?.lastState?.terminated)?.finishedAt ?? null,
    location: address ? { address } : null,
    port: spec?.containers[0]?.ports?.[0]?.containerPort ?? null,
  };
}

function readingOf(pod: Pod, container: ContainerStatus | undefined): Reading {
  const { status } = pod;
  if (pod.metadata?.deletionTimestamp !== undefined)
    return { status: 'stopping', reason: isOnLostMachine(pod) ? LOST_MACHINE : null, fault: null };
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded')
    return { status: 'crashed', reason: endedReason(pod, container), fault: 'start' };
  if (container === undefined) return { status: 'starting', reason: unscheduledReason(pod), fault: null };
  if (conditionOf(pod, 'Ready')?.status === 'True') return { status: 'running', reason: null, fault: null };
  // Its machine said so last. After an outage of the API server all machines are overdue for a while, and all serve.
  if (container.ready && container.state?.running) return { status: 'running', reason: UNHEARD_MACHINE, fault: null };
  return unreadyReading(pod, container);
}

/** What containerd says, also while the cluster waits to try again. */
function pullError({ message, reason = '' }: ContainerStateWaiting = {}): string {
  return (message || reason).replace(/^Back-off pulling image .*?: ErrImagePull: /, '');
}

function isOlderThan({ metadata }: Pod, ms: number): boolean {
  return Date.now() - Date.parse(metadata?.creationTimestamp ?? '') > ms;
}

/** Waits for a registry that could not be reached for so long that the next attempt is minutes away. */
export function isPullOverdue(pod: Pod): boolean {
  const { reason, message = '' } = pod.status?.containerStatuses?.[0]?.state?.waiting ?? {};
  const isAway = reason === 'ImagePullBackOff' && REGISTRY_AWAY.test(message);
  return isAway && pod.metadata?.deletionTimestamp === undefined && isOlderThan(pod, PULLED_ANEW_MS);
}

/** What became of it there is not known before the machine is back, or is removed from the cluster. */
function isOnLostMachine(pod: Pod): boolean {
  return conditionOf(pod, 'DisruptionTarget')?.reason === 'DeletionByTaintManager';
}

function unreadyReading(pod: Pod, container: ContainerStatus): Reading {
  const waiting = container.state?.waiting?.reason ?? '';
  if (IMAGE_REASONS.has(waiting) && REGISTRY_AWAY.test(container.state?.waiting?.message ?? ''))
    return { status: 'starting', reason: 'The cluster does not reach the registry of the image yet.', fault: null };
  if (IMAGE_REASONS.has(waiting))
    return {
      status: 'starting',
      reason: `The cluster cannot pull the image of the release: ${sentence(pullError(container.state?.waiting))}`,
      fault: FINAL_IMAGE_REASONS.has(waiting) || isOlderThan(pod, PULLED_WITHIN_MS) ? 'start' : null,
    };
  if (START_REASONS.has(waiting))
    return {
      status: 'starting',
      reason: `The cluster cannot start the program: ${sentence(container.state?.waiting?.message || waiting)}`,
      fault: 'start',
    };
  const ended = container.state?.terminated ?? container.lastState?.terminated;
  if (ended) {
    const unhealthy = unhealthyReason(ended, pod, container);
    if (unhealthy !== null) return { status: 'starting', reason: unhealthy, fault: 'health' };
    const reason = endOf(ended, pod);
    return { status: container.restartCount >= CRASHED_AFTER ? 'crashed' : 'starting', reason, fault: null };
  }
  return { status: 'starting', reason: null, fault: null };
}

/**
 * Of a program that the cluster has ended because it did not become healthy: the pod says only that it has ended. Its
 * exit code does not tell, since programs end with any code at SIGTERM; the time at which it ended does.
 */
function unhealthyReason(ended: ContainerStateTerminated, pod: Pod, { started }: ContainerStatus): string | null {
  const probe = pod.spec?.containers[0]?.startupProbe;
  if (started || !probe || ended.reason === 'OOMKilled' || !ENDED_BY_SIGNAL.has(ended.exitCode)) return null;
  const allowed = (probe.failureThreshold ?? 1) * (probe.periodSeconds ?? 1);
  const grace = pod.spec?.terminationGracePeriodSeconds ?? 0;
  const ran = (Date.parse(ended.finishedAt ?? '') - Date.parse(ended.startedAt ?? '')) / 1000;
  // Times are in whole seconds.
  if (!(ran >= allowed - 1 && ran <= allowed + (probe.timeoutSeconds ?? 1) + grace + LATE_SECONDS)) return null;
  return `The app did not become healthy within ${allowed} seconds: ${missedBy(probe)}`;
}

function missedBy({ httpGet, tcpSocket }: Probe): string {
  if (httpGet) return `it did not answer GET ${httpGet.path ?? '/'} with a status from 200 to 399.`;
  const address = 'It must listen on 0.0.0.0, at the port that the variable PORT names.';
  if (tcpSocket) return `it accepted no connection on port ${tcpSocket.port}. ${address}`;
  return 'the command of its health check failed.';
}

function endedReason(pod: Pod, container: ContainerStatus | undefined): string {
  const { reason, message } = pod.status ?? {};
  if (reason === 'Evicted') return `The cluster evicted the instance: ${sentence(message ?? 'its machine was full')}`;
  if (reason === 'NodeLost' || reason === 'NodeShutdown') return 'The machine of the instance went down.';
  const ended = container?.state?.terminated;
  return ended ? endOf(ended, pod) : 'The instance ended.';
}

/** The same words as on a host, where they mean the same. */
function endOf(ended: ContainerStateTerminated, pod: Pod): string {
  if (ended.reason === 'OOMKilled') {
    const limit = pod.spec?.containers[0]?.resources?.limits?.memory?.replace('Mi', ' MB') ?? 'the memory of its size';
    return (
      `The app was ended because it used more than ${limit} of memory. ` +
      'Choose a larger size, or reduce the memory that it uses.'
    );
  }
  if (ended.exitCode === 0) return 'The app exited with code 0. Its command must run until it is stopped.';
  if (ended.signal) return `The app was ended by signal ${ended.signal}.`;
  const hint = ended.exitCode === 127 ? ' A program in its command was not found.' : '';
  return `The app exited with code ${ended.exitCode}.${hint}`;
}

function unscheduledReason(pod: Pod): string | null {
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.status !== 'False') return null;
  return `The cluster has no room for the instance yet: ${sentence(scheduled.message ?? scheduled.reason ?? '')}`;
}

export function conditionOf({ status }: Pod, type: string): PodCondition | undefined {
  return status?.conditions?.find((one) => one.type === type);
}

/** Of what a cluster says; programs of tenants have a part in it, with control characters where they like. */
export function sentence(text: string): string {
  const cut = text
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 300);
  return cut === '' || cut.endsWith('.') ? cut : `${cut}.`;
}
