// Pods that an admission controller refuses, as for a quota. Kubernetes waits twice as long after each attempt, up to
// 1000 seconds, and does not notice that a quota was raised. Any change of a Deployment's annotations is copied to its
// ReplicaSet, and makes its controller try again at once.
import type { Deployment, DeploymentCondition } from 'kubernetes-types/apps/v1';
import { refusalSentence } from './project_quota';

/** Annotation of a Deployment whose pods are refused: when they were last asked for again, RFC 3339. */
const RETRIED_AT = 'platform-api/retried-at';
/** Until then the cluster tries often enough itself. */
const RETRY_MS = 30_000;
/** Pods that end make room in a quota; of a new namespace, controllers count the quota and make the account. */
const PASSING = /exceeded quota|status unknown for quota|error looking up service account/;
const SETTLES_MS = 15_000;

/** Why the cluster creates no pods; null where it does. */
export function refusalOfInstances(deployment: Deployment): string | null {
  const failure = failureOf(deployment);
  if (failure === undefined || isSettling(failure)) return null;
  return refusalSentence(failure.message ?? failure.reason ?? '', 'its instances');
}

/** Whether the cluster is to be asked for the refused pods again. A time that somebody has edited does not count. */
export function isRetryDue(present: Deployment, now = Date.now()): boolean {
  const failure = failureOf(present);
  if (failure === undefined) return false;
  const since = Date.parse(retriedAtOf(present) ?? failure.lastTransitionTime ?? '');
  return !(Math.abs(now - since) < RETRY_MS);
}

/** The Deployment as it is applied over the present one: where a retry is due, with what makes the cluster try. */
export function withRetry(desired: Deployment, present: Deployment | null, now = Date.now()): Deployment {
  if (present === null || failureOf(present) === undefined) return desired;
  const retriedAt = isRetryDue(present, now) ? new Date(now).toISOString() : retriedAtOf(present);
  if (retriedAt === undefined) return desired;
  const annotations = { ...desired.metadata?.annotations, [RETRIED_AT]: retriedAt };
  return { ...desired, metadata: { ...desired.metadata, annotations } };
}

function failureOf({ status }: Deployment): DeploymentCondition | undefined {
  return status?.conditions?.find(({ type, status: value }) => type === 'ReplicaFailure' && value === 'True');
}

function retriedAtOf({ metadata }: Deployment): string | undefined {
  return metadata?.annotations?.[RETRIED_AT];
}

/** Over in a moment, as a rule. A clock that is far ahead of ours does not count. */
function isSettling({ message = '', lastTransitionTime = '' }: DeploymentCondition): boolean {
  return PASSING.test(message) && Math.abs(Date.now() - Date.parse(lastTransitionTime)) < SETTLES_MS;
}
