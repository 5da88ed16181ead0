// Deployments whose pods are refused, as for a quota: what is told, and when the cluster is asked again.
import type { Deployment } from 'kubernetes-types/apps/v1';
import { workloadObjects } from '../../../drivers/workload/kubernetes/deployment';
import { withDigest } from '../../../drivers/workload/kubernetes/drift';
import { isRetryDue, refusalOfInstances, withRetry } from '../../../drivers/workload/kubernetes/refused_pods';
import { workloadSample } from '../../support/kubernetes/workload_sample';

const desired = withDigest(workloadObjects('platform', workloadSample()).deployment);
const QUOTA = 'pods "a-1" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2';
const AT = 'pods "a-1" is forbidden: '.length;
const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();

function refused(
  lastTransitionTime: string,
  annotations: Record<string, string> = {},
  message: string = QUOTA,
): Deployment {
  const condition = { type: 'ReplicaFailure', status: 'True', message, lastTransitionTime };
  const metadata = { ...desired.metadata, annotations: { ...desired.metadata?.annotations, ...annotations } };
  return { ...desired, metadata, status: { conditions: [condition] } };
}

/** As an API server keeps it. */
const applied = (over: Deployment, given: Deployment): Deployment => ({ ...over, metadata: given.metadata });

test('a refusal is told once pods that end have had time to make room', () => {
  expect(refusalOfInstances(refused(ago(5)))).toBeNull();
  expect(refusalOfInstances(refused(ago(20)))).toContain('the quota `team` of its namespace would be exceeded');
  expect(refusalOfInstances(desired)).toBeNull();
  // By the clock of an API server that is ahead of that of this machine.
  expect(refusalOfInstances(refused(ago(-3600)))).toContain('the quota `team`');
});

// In the words of Kubernetes 1.34.
test.each([
  'pods "a-1" is forbidden: status unknown for quota: platform, resources: limits.cpu,limits.memory,pods',
  'pods "a-1" is forbidden: error looking up service account shop/default: serviceaccount "default" not found',
])('what a cluster has not made yet for a new namespace is told only if it stays away: %s', (message) => {
  expect(refusalOfInstances(refused(ago(5), {}, message))).toBeNull();
  expect(refusalOfInstances(refused(ago(20), {}, message))).toContain(message.slice(AT));
});

test('what nothing changes by itself is told at once', () => {
  const message = 'pods "a-1" is forbidden: violates PodSecurity "restricted:latest"';
  expect(refusalOfInstances(refused(ago(0), {}, message))).toContain(message.slice(AT));
});

test('the cluster is asked again after half a minute, and not before another', () => {
  expect(isRetryDue(refused(ago(5)))).toBe(false);
  const present = refused(ago(600));
  expect(isRetryDue(present)).toBe(true);
  const first = withRetry(desired, present);
  expect(first.metadata?.annotations).toMatchObject(desired.metadata?.annotations ?? {});
  const asked = applied(present, first);
  expect(isRetryDue(asked)).toBe(false);
  // What is applied meanwhile leaves the time in its place, which nobody else may take for a change.
  expect(withRetry(desired, asked)).toEqual(first);
  const later = Date.now() + 31_000;
  expect(isRetryDue(asked, later)).toBe(true);
  expect(withRetry(desired, asked, later)).not.toEqual(first);
});

test('a Deployment that is not refused is applied as it is, and loses the time of its last refusal', () => {
  expect(withRetry(desired, null)).toBe(desired);
  const retried = refused(ago(600), { 'platform-api/retried-at': ago(100) });
  expect(isRetryDue({ ...retried, status: {} })).toBe(false);
  expect(withRetry(desired, { ...retried, status: {} })).toBe(desired);
});

test.each(['tomorrow', '2999-01-01T00:00:00Z'])('a time that somebody has made %s stands in no way', (time) => {
  expect(isRetryDue(refused(ago(600), { 'platform-api/retried-at': time }))).toBe(true);
});
