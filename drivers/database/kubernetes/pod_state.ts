// What a pod of a database server says of it, as sentences for users.
import type { ContainerStateTerminated, Pod } from 'kubernetes-types/core/v1';
import { cleanFailureText } from '../../../core/log/failure_text';
import { conditionOf, IMAGE_REASONS, sentence, START_REASONS } from '../../workload/kubernetes/pod_state';

export interface ServerPodState {
  state: 'starting' | 'running' | 'failed';
  /** Why it does not run, where that is known. */
  reason: string | null;
}

/** 53100: disk_full (PostgreSQL, "Error Codes"). */
const FULL = /No space left on device|\b53100 (FATAL|PANIC)\b/;
/** Of the lines of a log, in the words of all engines. */
const FAILURE = /\b(FATAL|PANIC|ERROR|Fatal error|fatal|error)\b.*/;

const LOST_MACHINE =
  'The machine of the database does not respond, and may still write its data. The database starts elsewhere once an ' +
  'operator has removed the machine from the cluster (`kubectl delete node`) or has given it the taint ' +
  '`node.kubernetes.io/out-of-service`, or goes on when the machine is back.';

/** @param boundTo storage class whose disks stay on one machine; null: they may be moved */
export function stateOfServerPod(pod: Pod, boundTo: string | null): ServerPodState {
  const { metadata, status } = pod;
  const container = status?.containerStatuses?.[0];
  if (metadata?.deletionTimestamp !== undefined)
    return { state: 'starting', reason: isOnLostMachine(pod) ? lostMachine(boundTo) : null };
  if (status?.reason === 'Evicted')
    return { state: 'failed', reason: `The cluster evicted the database: ${sentence(status.message ?? '')}` };
  if (container === undefined) return { state: 'starting', reason: unscheduledReason(pod, boundTo) };
  const { state = {}, lastState = {}, ready } = container;
  if (conditionOf(pod, 'Ready')?.status === 'True') return { state: 'running', reason: null };
  // Its machine said so last.
  if (ready && state.running) return { state: 'running', reason: null };
  const waiting = state.waiting?.reason ?? '';
  const detail = sentence(state.waiting?.message || waiting);
  if (IMAGE_REASONS.has(waiting))
    return { state: 'starting', reason: `The cluster cannot pull the image of the database: ${detail}` };
  if (START_REASONS.has(waiting))
    return { state: 'starting', reason: `The cluster cannot start the database: ${detail}` };
  const ended = state.terminated ?? (waiting === 'CrashLoopBackOff' ? lastState.terminated : undefined);
  if (ended) return { state: 'failed', reason: endOf(ended) };
  return { state: 'starting', reason: null };
}

/** Why a server ended. The same words as on a host, where they mean the same (drivers/hosted_server/unit.ts). */
function endOf({ reason, exitCode, signal, message }: ContainerStateTerminated): string {
  if (reason === 'OOMKilled') return 'The server used more memory than its package has.';
  if (FULL.test(message ?? ''))
    return 'The disk of the database is full, so the server does not start. Increase `storage_gb`.';
  const end = signal ? `The server was ended by signal ${signal}.` : `The server ended with code ${exitCode}.`;
  const failure = FAILURE.exec((message ?? '').split('\n').findLast((line) => FAILURE.test(line)) ?? '')?.[0];
  return failure === undefined ? end : `${end} Its log says: ${sentence(cleanFailureText(failure))}`;
}

/** Its kubelet has not said that it ended. */
export function isOnLostMachine(pod: Pod): boolean {
  return conditionOf(pod, 'DisruptionTarget')?.reason === 'DeletionByTaintManager';
}

function lostMachine(boundTo: string | null): string {
  if (boundTo === null) return LOST_MACHINE;
  return (
    'The machine of the database does not respond. Disks of the storage class ' +
    `${boundTo} stay on their machine, so the database goes on only when the machine is back.`
  );
}

function unscheduledReason(pod: Pod, boundTo: string | null): string | null {
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.status !== 'False') return null;
  const bound = boundTo === null ? '' : ` Disks of the storage class ${boundTo} stay on their machine.`;
  const said = sentence(scheduled.message ?? scheduled.reason ?? '');
  return `The cluster has no machine for the database yet: ${said}${bound}`;
}
