// The objects of a task on Kubernetes, and what its Job and its pod mean.
import { execFileSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import type { Event, Pod } from 'kubernetes-types/core/v1';
import type { PodStream } from '../../../drivers/kubernetes/client/pod_stream';
import type { Task } from '../../../drivers/workload/task';
import type { Workload } from '../../../drivers/workload';
import { workloadObjects } from '../../../drivers/workload/kubernetes/deployment';
import { overlapOf } from '../../../drivers/workload/kubernetes/task/attach';
import { taskObjects } from '../../../drivers/workload/kubernetes/task/job';
import { withoutMarks } from '../../../drivers/workload/kubernetes/task/log_output';
import { openOutputs } from '../../../drivers/workload/kubernetes/task/outputs';
import { isMark, markOf } from '../../../drivers/workload/kubernetes/task/script';
import { podRefusalOf, startWarningOf, taskStateOf } from '../../../drivers/workload/kubernetes/task/state';

const image = {
  reference: 'registry.test/apps/app_1@sha256:00',
  login: { host: 'registry.test', username: 'u', password: 'secret-login', ends_at: '2030-01-01T00:00:00Z' },
};
const task: Task = {
  ...{ id: 'run_01abc', project_id: 'prj_1', application_id: 'app_1', preview_id: null, release_id: 'rel_1' },
  ...{ application_name: 'shop', process_type: 'web', image, user: { uid: 10_001, gid: 10_001 } },
  ...{ documents: [], reaches: [], volumes: [] },
  command: ['/platform/launch', '-c', 'echo $$ $(HOME) "$HOME"', 'web'],
  env: { TOKEN: 'secret-value' },
  limits: { memory_mb: 256, cpus: 0.5, disk_mb: 1024 },
  ...{ timeout_seconds: 60, shutdown_grace_seconds: 9, input: null },
};

const podSpecOf = (changed: Partial<Task> = {}) =>
  taskObjects('test', { ...task, ...changed }).job.spec!.template.spec!;

/** As a cluster does it: k8s.io/kubernetes/third_party/forked/golang/expansion. */
function expanded(text: string): string {
  return text.replaceAll(/\$(\$|\(([^)]*)\))/g, (whole, escaped: string, name?: string) =>
    escaped === '$' ? '$' : name === undefined ? whole : 'REPLACED',
  );
}

describe('the Job of a task', () => {
  test('is named after the task and runs once, without a right and without a value in it', () => {
    const { job, variables, pull } = taskObjects('test', task);
    expect(job.metadata).toMatchObject({ name: 'run-01abc', namespace: 'test-prj-1' });
    expect(job.metadata?.labels).toMatchObject({
      'platform-api/installation': 'test',
      'platform-api/run': 'run_01abc',
    });
    expect(job.metadata?.labels).not.toHaveProperty('platform-api/workload');
    expect(job.spec).toMatchObject({ backoffLimit: 0, template: { spec: { restartPolicy: 'Never' } } });
    expect(JSON.stringify(job)).not.toMatch(/secret-|c2VjcmV0/);
    expect(variables).toMatchObject({
      immutable: true,
      data: { TOKEN: Buffer.from('secret-value').toString('base64') },
    });
    expect(pull.type).toBe('kubernetes.io/dockerconfigjson');
    expect(podSpecOf()).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 10_001, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [{ securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }],
    });
  });

  test('ends with its pod, whose deadline keeps what it printed', () => {
    const { job } = taskObjects('test', task);
    const ofPod = job.spec?.template.spec?.activeDeadlineSeconds ?? 0;
    expect(ofPod).toBeGreaterThan(60);
    expect(job.spec?.activeDeadlineSeconds).toBeGreaterThan(ofPod + 9);
    expect(podSpecOf().terminationGracePeriodSeconds).toBe(9);
  });

  test('passes words on as they are, also those of workloads', () => {
    const words = podSpecOf().containers[0]?.command ?? [];
    expect(words.map(expanded)).toEqual(task.command);
    const workload = { ...task, id: 'wkl_1', instances: 1, port: null, health: null } as unknown as Workload;
    const { deployment } = workloadObjects('test', workload);
    expect(deployment.spec?.template.spec?.containers[0]?.command?.map(expanded)).toEqual(task.command);
  });

  test.each(['pipe', 'terminal'] as const)('with a %s waits for its client in a script that shells accept', (input) => {
    const { containers, volumes } = podSpecOf({ input });
    const [shell = '', option = '', script = '', , ...command] = (containers[0]?.command ?? []).map(expanded);
    expect([shell, option, command]).toEqual(['/bin/sh', '-c', task.command]);
    execFileSync('/bin/sh', ['-n', '-c', script]);
    expect([containers[0]?.tty === true, volumes?.length]).toEqual([input === 'terminal', 1]);
  });
});

const podWith = (status: Pod['status'], metadata: Pod['metadata'] = {}): Pod => ({ metadata, status });
const terminated = (exitCode: number, reason = 'Error'): Pod['status'] => ({
  phase: exitCode === 0 ? 'Succeeded' : 'Failed',
  containerStatuses: [
    {
      ...{ name: 'run', image: '', imageID: '', ready: false, restartCount: 0 },
      state: {
        terminated: { exitCode, reason, startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:00:09Z' },
      },
    },
  ],
});

describe('the state of a task', () => {
  const exited = { state: 'exited', at: '2026-01-01T00:00:09Z', started_at: '2026-01-01T00:00:00Z' };
  test.each([
    ['success', terminated(0), { code: 0, signal: null, killed: null, reason: null }],
    ['a code', terminated(3), { code: 3, signal: null, killed: null, reason: null }],
    ['a signal', terminated(143), { code: null, signal: 'SIGTERM', killed: null, reason: null }],
    ['memory', terminated(137, 'OOMKilled'), { code: null, signal: 'SIGKILL', killed: 'memory' }],
    ['memory of another process', terminated(0, 'OOMKilled'), { code: 0, killed: null, reason: null }],
    ['the deadline', { ...terminated(143), reason: 'DeadlineExceeded' }, { signal: 'SIGTERM', killed: 'time' }],
    [
      'a full disk',
      { ...terminated(137), reason: 'Evicted', message: 'Pod ephemeral local storage usage exceeds the limit' },
      { killed: 'disk' },
    ],
    [
      'an eviction',
      { ...terminated(137), reason: 'Evicted', message: 'The node was low on memory.' },
      { killed: null, reason: 'The cluster evicted the run: The node was low on memory.' },
    ],
    [
      'a start that failed',
      terminated(128, 'StartError'),
      { killed: null, reason: expect.stringMatching(/not start/) },
    ],
  ])('after %s', (_, status, end) => {
    expect(taskStateOf({}, podWith(status))).toMatchObject({ ...exited, ...end });
  });

  test('without a pod: not yet, or not any more', () => {
    expect(taskStateOf({}, null)).toEqual({ state: 'waiting', reason: null, is_final: false });
    const failed = { type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', lastTransitionTime: 'then' };
    const gone = taskStateOf({ status: { conditions: [failed] } }, null);
    expect(gone).toMatchObject({ state: 'exited', code: null, killed: null, reason: expect.stringMatching(/removed/) });
    const late = taskStateOf({ status: { conditions: [{ ...failed, reason: 'DeadlineExceeded' }] } }, null);
    expect(late).toMatchObject({ state: 'exited', killed: 'time' });
  });

  test('a deadline that has passed before the command ran is no time limit of the run', () => {
    const [waiting] = [{ reason: 'ImagePullBackOff', message: 'not found' }];
    const status = { phase: 'Failed', reason: 'DeadlineExceeded', message: 'Pod was active too long' };
    const container = { name: 'run', image: '', imageID: '', ready: false, restartCount: 0, state: { waiting } };
    expect(taskStateOf({}, podWith({ ...status, containerStatuses: [container] }))).toMatchObject({
      ...{ state: 'exited', code: null, killed: null },
      reason: 'The cluster cannot pull the image of the release: not found.',
    });
    expect(taskStateOf({}, podWith(status))).toMatchObject({
      ...{ state: 'exited', killed: null, reason: expect.stringContaining('has not started the command') },
    });
  });

  test('says what keeps a pod that has a machine', () => {
    const event = (type: string, message: string) => ({ type, message }) as Event;
    expect(startWarningOf([event('Normal', 'Pulling image')])).toBeNull();
    expect(startWarningOf([event('Warning', 'MountVolume.SetUp failed'), event('Normal', 'Pulling')])).toBe(
      'The cluster has not started the command yet: MountVolume.SetUp failed.',
    );
  });

  test('says what it waits for', () => {
    const name = podWith({
      containerStatuses: [
        {
          ...{ name: 'run', image: '', imageID: '', ready: false, restartCount: 0 },
          state: { waiting: { reason: 'InvalidImageName' } },
        },
      ],
    });
    expect(taskStateOf({}, name)).toMatchObject({ state: 'waiting', is_final: true });
    const waiting = (reason: string, message: string): Pod =>
      podWith({
        containerStatuses: [
          {
            ...{ name: 'run', image: '', imageID: '', ready: false, restartCount: 0 },
            state: { waiting: { reason, message } },
          },
        ],
      });
    expect(taskStateOf({}, waiting('ImagePullBackOff', 'not found'))).toEqual({
      ...{ state: 'waiting', is_final: false },
      reason: 'The cluster cannot pull the image of the release: not found.',
    });
    expect(taskStateOf({}, waiting('CreateContainerConfigError', 'x'))).toMatchObject({ is_final: true });
    const unscheduled = { type: 'PodScheduled', status: 'False', message: '0/2 nodes are available.' };
    expect(taskStateOf({}, podWith({ conditions: [unscheduled] }))).toMatchObject({
      reason: 'The cluster has no room for the run yet: 0/2 nodes are available.',
    });
    const event = { reason: 'FailedCreate', message: 'exceeded quota: none', metadata: {}, involvedObject: {} };
    expect(podRefusalOf([event])).toBe('The cluster refuses the run: exceeded quota: none.');
  });
});

describe('a client', () => {
  const client = '0123456789abcdef';
  const streams = (): { stdout: PassThrough; stderr: PassThrough; stream: PodStream } => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    return { stdout, stderr, stream: { stdout, stderr } as unknown as PodStream };
  };

  test('is announced by a line that is no output, in whatever pieces it comes', async () => {
    const { stdout, stderr, stream } = streams();
    const outputs = openOutputs(stream);
    const seen = outputs.seesMark(client);
    for (const part of [markOf(client).slice(0, 5), markOf(client).slice(5), '\r\n']) {
      stdout.write(part);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await seen).toBe(true);
    stdout.end('out');
    stderr.end('err');
    const parts = [await outputs.next(), await outputs.next(), await outputs.next()];
    expect(parts.map((part) => (part && part !== 'woken' ? `${part.stream} ${part.bytes}` : part))).toEqual([
      ...['stdout out', 'stderr err', null],
    ]);
  });

  test('that is woken keeps what has come, and output before the line is kept too', async () => {
    const { stdout, stream } = streams();
    const outputs = openOutputs(stream);
    const first = outputs.seesMark(client);
    outputs.wake();
    expect(await first).toBe(false);
    stdout.write('program\n');
    expect(await outputs.seesMark(client)).toBe(false);
    expect(outputs.takeNow().map(({ bytes }) => bytes.toString())).toEqual(['program\n']);
  });

  test('that comes late gets no byte twice', () => {
    const overlap = (past: string, present: string): number => overlapOf(Buffer.from(past), Buffer.from(present));
    expect([
      overlap('one\ntwo\n', 'two\nthree'),
      overlap('one\n', 'two'),
      overlap('', 'x'),
      overlap('ab', 'ab'),
    ]).toEqual([...[4, 0, 0, 2]]);
    expect([isMark(markOf(client)), isMark(`${markOf(client)}\r`), isMark('0123456789abcdef')]).toEqual([
      true,
      true,
      false,
    ]);
    expect(withoutMarks(Buffer.from(`a\n${markOf(client)}\nb\n`)).toString()).toBe('a\nb\n');
  });
});
