// A workload on a cluster whose objects change between a look and the next.
import type { Deployment, DeploymentStatus } from 'kubernetes-types/apps/v1';
import { loadConfig } from '../../../core/config';
import { driverContext } from '../../../core/driver';
import { openKubernetesClient, type KubernetesClient } from '../../../drivers/kubernetes/client/client';
import type { Workload, WorkloadDriver, WorkloadState } from '../../../drivers/workload';
import { openKubernetesWorkloads } from '../../../drivers/workload/kubernetes/driver';
import { projectRoom } from '../../../server/platform/cluster';
import { serveObjects, type ObjectStore } from '../../support/kubernetes/object_store';
import { respond, startOddApiServer, type OddApiServer } from '../../support/kubernetes/odd_api_server';
import { workloadSample } from '../../support/kubernetes/workload_sample';

let api: OddApiServer;
let client: KubernetesClient;
let store: ObjectStore;
let workloads: WorkloadDriver;
beforeAll(async () => {
  api = await startOddApiServer();
  client = openKubernetesClient(api.access());
});
beforeEach(() => {
  store = serveObjects(api);
  workloads = open();
});
afterEach(() => workloads.close());
afterAll(async () => {
  client.close();
  await api.close();
});

/** As a process that starts: it knows nothing. */
function open(): WorkloadDriver {
  const networks = { ingressNamespace: null, ingressAddresses: [], egressAllow: [] };
  const options = { client, prefix: 'platform', networks, room: projectRoom(loadConfig({})) };
  return openKubernetesWorkloads({ ...options, log: () => undefined });
}

function sample(more: Partial<Workload> = {}): Workload {
  const { image } = workloadSample();
  const ends_at = new Date(Date.now() + 365 * 86_400_000).toISOString();
  return workloadSample({ image: { ...image, login: { ...image.login, ends_at } }, ...more });
}

const ensure = (workload = sample()): Promise<WorkloadState> => workloads.ensure(workload, driverContext(10_000));
const deploymentPath = (): string => [...store.objects.keys()].find((path) => path.includes('/deployments/')) ?? '';
const deployment = (): Deployment => store.find(deploymentPath()) as Deployment;
const applies = (): string[] => api.requests.flatMap(({ method, url }) => (method === 'PATCH' ? url.pathname : []));

/** As the controller of the cluster writes it. */
function observe(status: DeploymentStatus, generation = 1): void {
  const present = deployment();
  const metadata = { ...present.metadata, generation };
  store.objects.set(deploymentPath(), { ...present, metadata, status } as never);
}

const refused = (): DeploymentStatus => {
  const lastTransitionTime = new Date(Date.now() - 20_000).toISOString();
  const message = 'pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2';
  const condition = { type: 'ReplicaFailure', status: 'True', message, lastTransitionTime };
  return { observedGeneration: 1, readyReplicas: 1, conditions: [condition] };
};

test('what was in the way is told as long as it is, and no longer', async () => {
  await ensure();
  observe(refused());
  workloads = open();
  expect((await ensure()).obstacle).toContain('the quota `team` of its namespace would be exceeded');
  observe({ observedGeneration: 1, readyReplicas: 2 });
  const before = applies().length;
  expect(await ensure()).toEqual({ ready: 2, obstacle: null, corrected: [] });
  expect(applies()).toHaveLength(before);
});

test('the status of a Deployment before its last change says nothing of it', async () => {
  await ensure();
  observe(refused());
  observe({ ...refused(), readyReplicas: 2 }, 2);
  workloads = open();
  expect(await ensure()).toMatchObject({ ready: 0, obstacle: null });
});

describe('what somebody puts into the place of an object between the look at it and its change', () => {
  const foreign = { uid: 'uid-of-somebody', name: 'shop', namespace: 'platform-prj-1', labels: { app: 'other' } };
  const putBefore = (method: string, end: RegExp): void => {
    store.before = ({ method: asked, url: { pathname } }) => {
      if (asked === method && end.test(pathname)) store.objects.set(pathname, { metadata: foreign, spec: {} });
    };
  };
  const left = (path: RegExp): object[] =>
    [...store.objects].filter(([name]) => path.test(name)).map(([, object]) => object);

  test.each([/\/deployments\/[^/]+$/, /\/secrets\/[^/]+-pull$/, /\/poddisruptionbudgets\/[^/]+$/])(
    'stays as it is where there was none: %s',
    async (path) => {
      putBefore('PATCH', path);
      await expect(ensure()).rejects.toMatchObject({ reason: 'conflict' });
      expect(left(path)).toEqual([{ metadata: foreign, spec: {} }]);
    },
  );

  test.each([/\/deployments\/[^/]+$/, /\/poddisruptionbudgets\/[^/]+$/, /\/resourcequotas\/platform$/])(
    'stays as it is in the place of one of ours: %s',
    async (path) => {
      await ensure();
      workloads = open();
      putBefore('PATCH', path);
      await expect(ensure(sample({ instances: 3 }))).rejects.toMatchObject({ reason: 'transient' });
      expect(left(path)).toEqual([{ metadata: foreign, spec: {} }]);
      store.before = null;
      await expect(ensure(sample({ instances: 3 }))).rejects.toMatchObject({ reason: 'conflict' });
    },
  );

  test('one of ours that goes meanwhile is made anew with all that belongs to it', async () => {
    await ensure();
    workloads = open();
    store.before = ({ method, url: { pathname } }) => {
      if (method === 'PATCH' && pathname.includes('/deployments/')) store.objects.delete(pathname);
    };
    await expect(ensure(sample({ instances: 3 }))).rejects.toMatchObject({ reason: 'transient' });
    store.before = null;
    await ensure(sample({ instances: 3 }));
    expect(deployment().spec?.replicas).toBe(3);
  });
});

describe('the login with which nodes pull', () => {
  const login = { username: 'u', password: 'p', ends_at: new Date(Date.now() + 365 * 86_400_000).toISOString() };
  const at = (host: string): Workload =>
    sample({ image: { reference: `${host}/apps/app_1@sha256:00`, login: { host, ...login } } });
  const pull = () => store.find('-pull') as { data?: unknown } as { data: Record<string, string> };
  const hosts = (): string[] => {
    const text = Buffer.from(pull().data['.dockerconfigjson'] ?? '', 'base64').toString();
    return Object.keys((JSON.parse(text) as { auths: object }).auths);
  };

  test('is that of the registry that they pull from now', async () => {
    await ensure(at('old.example.com'));
    await ensure(at('new.example.com:5000'));
    expect(hosts()).toEqual(['new.example.com:5000']);
  });

  test('is put back where somebody has edited it', async () => {
    await ensure(at('old.example.com'));
    const { data } = structuredClone(pull());
    Object.assign(pull(), { data: { '.dockerconfigjson': 'e30=' } });
    workloads = open();
    await ensure(at('old.example.com'));
    expect(pull().data).toEqual(data);
  });

  test('stays while it is good for long', async () => {
    await ensure(at('old.example.com'));
    const before = structuredClone(pull());
    workloads = open();
    const another = sample({ image: { reference: 'r', login: { host: 'old.example.com', ...login, password: 'q' } } });
    await ensure({ ...another, image: { ...another.image, reference: at('old.example.com').image.reference } });
    expect(pull()).toEqual(before);
  });
});

describe('instances that end', () => {
  const pod = (label: string, id: string) => {
    const labels = { 'platform-api/installation': 'platform', 'platform-api/project': 'prj_1', [label]: id };
    const path = '/api/v1/namespaces/platform-prj-1/pods/ending';
    store.objects.set(path, { metadata: { name: 'ending', namespace: 'platform-prj-1', uid: 'uid-pod', labels } });
    return path;
  };
  const left = (): string[] =>
    [...store.objects.keys()].filter((path) => /\/(networkpolicies\/[^/]+|deployments\/[^/]+|jobs\/[^/]+)$/.test(path));
  const reaches = [{ address: '192.0.2.1', port: 5432 }];

  test('reach their databases until the last of them has gone', async () => {
    await ensure(sample({ reaches }));
    const path = pod('platform-api/workload', 'wkl_1');
    expect(await workloads.remove({ id: 'wkl_1' }, driverContext(10_000))).toBe(false);
    expect(left()).toEqual([expect.stringMatching(/platform$/), expect.stringMatching(/networkpolicies\/shop-web-/)]);
    store.objects.delete(path);
    expect(await workloads.remove({ id: 'wkl_1' }, driverContext(10_000))).toBe(true);
    expect(left()).toEqual([expect.stringMatching(/platform$/)]);
  });

  test('and so do runs', async () => {
    const { id: _workload, process_type, ...rest } = sample({ reaches });
    const times = { timeout_seconds: 60, shutdown_grace_seconds: 9 };
    const task = { ...rest, ...times, id: 'run_1', process_type, command: ['true'], input: null };
    await workloads.tasks.start(task, driverContext(10_000));
    const path = pod('platform-api/run', 'run_1');
    expect(await workloads.tasks.destroy({ id: 'run_1' }, driverContext(10_000))).toBe(false);
    expect(left()).toEqual([expect.stringMatching(/platform$/), expect.stringMatching(/networkpolicies\/run-1$/)]);
    store.objects.delete(path);
    expect(await workloads.tasks.destroy({ id: 'run_1' }, driverContext(10_000))).toBe(true);
    expect(left()).toEqual([expect.stringMatching(/platform$/)]);
  });
});

test('rights are asked for side by side: a cluster that is far away is not one that does not answer', async () => {
  api.answer(({ url: { pathname } }, response) => {
    if (pathname === '/version') return respond(response, 200, { major: '1', minor: '34', gitVersion: 'v1.34.0' });
    if (pathname === '/apis/metrics.k8s.io/v1beta1/pods') return respond(response, 200, { metadata: {}, items: [] });
    setTimeout(() => respond(response, 201, { status: { allowed: true } }), 200);
  });
  expect(await workloads.fingerprint(driverContext(5_000))).toMatchObject({ healthy: true, reason: null });
});

describe('clocks that do not agree', () => {
  afterEach(() => jest.restoreAllMocks());

  test('a namespace is looked at again after a minute, though the clock of the worker was set back', async () => {
    await ensure();
    const [clock, monotonic] = [Date.now(), performance.now()];
    jest.spyOn(Date, 'now').mockReturnValue(clock - 7_200_000);
    jest.spyOn(performance, 'now').mockReturnValue(monotonic + 61_000);
    api.requests.length = 0;
    await ensure();
    expect(applies().filter((path) => path.endsWith('/resourcequotas/platform'))).toHaveLength(1);
  });

  test('what a run waits for is told though the cluster is an hour ahead', async () => {
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    const labels = { 'platform-api/installation': 'platform', 'platform-api/run': 'run_1' };
    const metadata = { name: 'run-1', namespace: 'platform-prj-1', uid: 'uid-job', creationTimestamp: ahead, labels };
    store.objects.set('/apis/batch/v1/namespaces/platform-prj-1/jobs/run-1', { metadata });
    const event = { name: 'e', namespace: 'platform-prj-1', uid: 'uid-event', creationTimestamp: ahead };
    const said = { reason: 'FailedCreate', message: 'Error creating: pods "run-1-x" is forbidden: no room' };
    store.objects.set('/api/v1/namespaces/platform-prj-1/events/e', { metadata: event, ...said });
    const ref = { id: 'run_1', project_id: 'prj_1' };
    expect(await workloads.tasks.inspect(ref, driverContext(10_000))).toMatchObject({
      reason: expect.stringContaining('no room'),
    });
  });
});
