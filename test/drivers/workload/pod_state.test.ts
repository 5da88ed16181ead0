// What pods mean for the instances that they are.
import type { ContainerState, Pod } from 'kubernetes-types/core/v1';
import { instanceOfPod } from '../../../drivers/workload/kubernetes/pod_state';

/** With a startup probe of 8 seconds, and 6 seconds to end. */
function podOf(state: ContainerState, lastState: ContainerState = {}, started = false): Pod {
  return {
    metadata: { uid: 'u', labels: { 'platform-api/workload': 'wkl_1' } },
    spec: {
      terminationGracePeriodSeconds: 6,
      containers: [
        {
          name: 'web',
          startupProbe: { httpGet: { path: '/up', port: 8080 }, periodSeconds: 1, failureThreshold: 8 },
        },
      ],
    },
    status: {
      phase: 'Running',
      containerStatuses: [
        { ...{ name: 'web', image: 'i', imageID: 'i', ready: false, restartCount: 1, started }, state, lastState },
      ],
    },
  };
}

const waiting = (reason: string, message: string): Pod => podOf({ waiting: { reason, message } });
const ended = (exitCode: number, afterSeconds: number, reason = 'Completed'): ContainerState => ({
  terminated: {
    ...{ exitCode, reason, startedAt: '2026-01-01T00:00:00Z' },
    finishedAt: new Date(Date.UTC(2026, 0, 1) + afterSeconds * 1000).toISOString(),
  },
});
const resolve = 'failed to pull and unpack image "r:5000/a:1": failed to resolve reference "r:5000/a:1": ';

test.each([
  [
    'ErrImagePull',
    `${resolve}failed to do request: Head "https://r/v2/": dial tcp 10.0.0.1:5000: connect: connection refused`,
  ],
  ['ImagePullBackOff', `Back-off pulling image "r": ErrImagePull: ${resolve}dial tcp 10.0.0.1:5000: i/o timeout`],
  ['ErrImagePull', `${resolve}unexpected status from HEAD request to http://r/v2/a: 503 Service Unavailable`],
  ['ErrImagePull', `${resolve}failed to authorize: failed to fetch oauth token: Post "http://r:5000/token": EOF`],
  ['ErrImagePull', `${resolve}failed to do request: Head "https://r/v2/": http: server closed idle connection`],
  [
    'ErrImagePull',
    `${resolve}failed to do request: Head "https://r/v2/": write tcp 10.0.0.2:1->10.0.0.1:2: broken pipe`,
  ],
  ['ErrImagePull', `${resolve}dial tcp: lookup r on 10.0.0.10:53: server misbehaving`],
  ['ErrImagePull', `${resolve}failed to do request: Head "https://r/v2/": dial tcp: connect: connection timed out`],
])('a registry that is away is waited for: %s', (reason, message) => {
  expect(instanceOfPod(waiting(reason, message))).toMatchObject({
    ...{ status: 'starting', fault: null, reason: 'The cluster does not reach the registry of the image yet.' },
  });
});

const aged = (pod: Pod, seconds: number): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, creationTimestamp: new Date(Date.now() - seconds * 1000).toISOString() },
});

test.each([
  ['ErrImagePull', `${resolve}r:5000/a:1: not found`],
  ['ErrImagePull', `${resolve}failed to authorize: unexpected status: 401 Unauthorized`],
  ['ImagePullBackOff', `Back-off pulling image "r:5000/a:1": ErrImagePull: ${resolve}r:5000/a:1: not found`],
])('an image that is not to be had is asked for again for a minute, and told in full: %s %s', (reason, message) => {
  const pod = waiting(reason, message);
  const told = `The cluster cannot pull the image of the release: ${message.replace(/^Back-off.*ErrImagePull: /, '')}.`;
  expect(instanceOfPod(aged(pod, 20))).toMatchObject({ status: 'starting', fault: null, reason: told });
  expect(instanceOfPod(aged(pod, 70))).toMatchObject({ status: 'starting', fault: 'start', reason: told });
});

test('an image whose name is not valid is not waited for', () => {
  const pod = waiting('InvalidImageName', "couldn't parse image name");
  expect(instanceOfPod(aged(pod, 1))).toMatchObject({ status: 'starting', fault: 'start' });
});

test('an instance whose machine the cluster has not heard from is taken as it was', () => {
  const pod = podOf({ running: { startedAt: '2026-01-01T00:00:20Z' } });
  const [container] = pod.status?.containerStatuses ?? [];
  const conditions = [{ type: 'Ready', status: 'False' }];
  const unheard = {
    ...pod,
    status: { ...pod.status, conditions, containerStatuses: [{ ...container!, ready: true }] },
  };
  expect(instanceOfPod(unheard)).toMatchObject({
    ...{ status: 'running', fault: null },
    reason: 'The cluster has not heard from the machine of the instance for some time.',
  });
});

test.each([0, 143, 137])(
  'a program that was ended since it was not healthy is told so, whatever it says: %d',
  (code) => {
    const reason =
      'The app did not become healthy within 8 seconds: it did not answer GET /up with a status from 200 to 399.';
    const pod = podOf({ running: { startedAt: '2026-01-01T00:00:20Z' } }, ended(code, 9));
    expect(instanceOfPod(pod)).toMatchObject({ status: 'starting', fault: 'health', reason });
  },
);

test.each([
  ['at once', ended(0, 1), 'The app exited with code 0. Its command must run until it is stopped.'],
  ['with a code of its own', ended(3, 9), 'The app exited with code 3.'],
  ['after it had run for long', ended(0, 600), 'The app exited with code 0. Its command must run until it is stopped.'],
  ['for want of memory', ended(137, 9, 'OOMKilled'), expect.stringContaining('of memory')],
])('a program that ended by itself %s is told so', (_, last, reason) => {
  expect(instanceOfPod(podOf({ waiting: { reason: 'CrashLoopBackOff' } }, last))).toMatchObject({
    fault: null,
    reason,
  });
});
