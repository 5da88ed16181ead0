/** @tier heavy @quarter 2 @covers drivers/kubernetes */
// The client against a real API server, with kubectl as a witness: objects, conflicts, lists, rights, removals.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { driverContext } from '../../core/driver';
import type { ClusterAccess } from '../../drivers/kubernetes/client/access';
import { openKubernetesClient, type KubernetesClient } from '../../drivers/kubernetes/client/client';
import { inClusterAccess, loadKubeconfig } from '../../drivers/kubernetes/client/load_access';
import { resourceTypes } from '../../drivers/kubernetes/client/resource_type';
import { PROGRAM_IMAGE } from '../cluster/image';
import { kubectl, kubectlApply } from '../cluster/kubectl';
import { describeOnCluster } from '../cluster/on_cluster';
import { waitForCluster } from '../support/kubernetes/wait_for_cluster';

const { configMaps, deployments, namespaces, podMetrics, secrets } = resourceTypes;
const CONFIG_MAPS = 5000;

describeOnCluster('the client of Kubernetes', (kubeconfig) => {
  const namespace = `client-${process.pid}`;
  let client: KubernetesClient;
  const ctx = () => driverContext(30_000);
  const run = (...args: string[]): Promise<string> => kubectl(kubeconfig(), '--namespace', namespace, ...args);
  const seen = async (path: string, ...args: string[]): Promise<string> =>
    run('get', ...args, '-o', `jsonpath=${path}`);

  beforeAll(async () => {
    client = openKubernetesClient(await loadKubeconfig(kubeconfig()));
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await client.apply(namespaces, { metadata: { name: namespace, labels } }, ctx());
  });
  afterAll(async () => {
    await client.remove(namespaces, { name: namespace }, { propagation: 'Foreground' }, ctx());
    client.close();
  });

  test('knows the version of the cluster, as kubectl does', async () => {
    const { gitVersion } = await client.version(ctx());
    expect(await kubectl(kubeconfig(), 'version', '-o', 'json')).toContain(`"gitVersion": "${gitVersion}"`);
  });

  test('asks for rights, of others too', async () => {
    const question = { verb: 'create', group: 'apps', resource: 'deployments', namespace };
    expect(await client.reviewAccess(question, ctx())).toMatchObject({ allowed: true });
    const access = await loadKubeconfig(kubeconfig());
    const impersonation = { 'Impersonate-User': `system:serviceaccount:${namespace}:default` };
    const other = openKubernetesClient({ ...access, user: { ...access.user, impersonation } });
    expect(await other.reviewAccess(question, ctx())).toMatchObject({ allowed: false });
    await expect(other.list(configMaps, { namespace }, ctx())).rejects.toMatchObject({
      ...{ reason: 'unauthorized', code: 'forbidden', status: 403 },
    });
    other.close();
  });

  test('has the access of a pod, by a token that is replaced', async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'account-'));
    const file = (name: string): string => path.join(directory, name);
    const write = async (): Promise<void> => {
      writeFileSync(file('request'), JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' }));
      const address = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`;
      const made = JSON.parse(await run('create', '--raw', address, '-f', file('request'))) as {
        status: { token: string };
      };
      writeFileSync(file('token'), made.status.token);
    };
    const { server, authority } = await loadKubeconfig(kubeconfig());
    writeFileSync(file('ca.crt'), (authority as { text: string }).text);
    await write();
    const environment = { KUBERNETES_SERVICE_HOST: server.hostname, KUBERNETES_SERVICE_PORT: server.port || '443' };
    const inside = openKubernetesClient(inClusterAccess(environment, directory) as ClusterAccess);
    const question = { verb: 'list', group: '', resource: 'configmaps', namespace };
    expect(await inside.reviewAccess(question, ctx())).toMatchObject({ allowed: false });
    await run('create', 'rolebinding', 'viewer', '--clusterrole=view', `--serviceaccount=${namespace}:default`);
    await waitForCluster('the right', async () => (await inside.reviewAccess(question, ctx())).allowed);
    expect((await inside.list(configMaps, { namespace }, ctx())).items.length).toBeGreaterThan(0);
    writeFileSync(file('token'), 'no-token');
    inside.close();
    const refused = openKubernetesClient(inClusterAccess(environment, directory) as ClusterAccess);
    await expect(refused.version(ctx())).rejects.toMatchObject({ reason: 'unauthorized', status: 401 });
    await write();
    await refused.version(ctx());
    refused.close();
    rmSync(directory, { recursive: true });
  });

  test('an apply makes an object, a second one changes nothing, and a dry run leaves none', async () => {
    const object = { metadata: { name: 'settings', namespace }, data: { color: 'green' } };
    await client.apply(configMaps, object, ctx(), { dryRun: true });
    expect(await client.get(configMaps, object.metadata, ctx())).toBeNull();
    const first = await client.apply(configMaps, object, ctx());
    const second = await client.apply(configMaps, object, ctx());
    expect(second.metadata?.resourceVersion).toBe(first.metadata?.resourceVersion);
    expect(await seen('{.data.color}', 'configmap', 'settings')).toBe('green');
    const stored = await run('get', '--raw', `/api/v1/namespaces/${namespace}/configmaps/settings`);
    expect(JSON.parse(stored)).toMatchObject({ metadata: { managedFields: [{ manager: 'platform-api' }] } });
    await client.apply(configMaps, { ...object, data: { size: 'large' } }, ctx());
    expect(JSON.parse(await seen('{.data}', 'configmap', 'settings'))).toEqual({ size: 'large' });
    await client.patch(configMaps, object.metadata, { data: { size: null, tint: 'dark' } }, ctx());
    expect(JSON.parse(await seen('{.data}', 'configmap', 'settings'))).toEqual({ tint: 'dark' });
  });

  test.each([
    ['an unknown field', { colour: 'green' }, '.colour'],
    ['a value of another type', { data: { color: 5 } }, '.data.color'],
    ['a name that cannot be', { data: { 'a b': 'c' } }, 'data[a b]'],
  ])('an apply with %s is invalid, and names the field', async (_, fields, field) => {
    const object = { metadata: { name: 'wrong', namespace }, ...fields } as object;
    await expect(client.apply(configMaps, object, ctx())).rejects.toMatchObject({
      ...{ reason: 'invalid', code: 'invalid', fields: [field] },
    });
    expect(await run('get', 'configmaps')).not.toContain('wrong');
  });

  test('a Secret that is refused is not quoted', async () => {
    const object = { metadata: { name: 'secret', namespace }, data: { key: 'hunter2!' } };
    const error = (await client.apply(secrets, object, ctx()).catch((one: unknown) => one)) as Error;
    expect(error).toMatchObject({ reason: 'invalid', code: 'invalid' });
    expect(JSON.stringify([error.message, error])).not.toContain('hunter2');
  });

  test('what admission does not allow is invalid', async () => {
    const pod = { metadata: { name: 'root', namespace }, spec: { containers: [{ name: 'a', image: PROGRAM_IMAGE }] } };
    const error = (await client.apply(resourceTypes.pods, pod, ctx()).catch((one: unknown) => one)) as Error;
    expect(error).toMatchObject({ reason: 'invalid', code: 'invalid', status: 403 });
    expect(error.message).toContain('violates PodSecurity "restricted');
  });

  test('fields of another manager are a conflict that names it; without them its value stays', async () => {
    const deployment = (replicas?: number) => ({
      metadata: { name: 'web', namespace },
      spec: {
        replicas,
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: restricted(['serve=8080']) },
      },
    });
    await client.apply(deployments, deployment(1), ctx());
    const web = { name: 'web', namespace };
    await run('scale', 'deployment/web', '--replicas=2');
    await expect(client.apply(deployments, deployment(1), ctx())).rejects.toMatchObject({
      ...{ reason: 'conflict', code: 'conflict', managers: ['kubectl'], fields: ['.spec.replicas'] },
    });
    await client.apply(deployments, deployment(), ctx());
    expect(await seen('{.spec.replicas}', 'deployment', 'web')).toBe('2');
    await client.apply(deployments, deployment(1), ctx(), { force: true });
    expect(await seen('{.spec.replicas}', 'deployment', 'web')).toBe('1');
    expect(await client.setScale(deployments, web, 0, ctx())).toMatchObject({ desired: 0 });
    await waitForCluster('no pod', async () => (await client.getScale(deployments, web, ctx())).observed === 0);
    const selector = { ...deployment(), spec: { ...deployment().spec, selector: { matchLabels: { app: 'other' } } } };
    await expect(client.apply(deployments, selector as never, ctx())).rejects.toMatchObject({
      code: 'invalid',
      status: 422,
    });
  });

  test('an object is removed by its uid, and not the one that came after it', async () => {
    const object = { metadata: { name: 'short', namespace } };
    const old = await client.apply(configMaps, object, ctx());
    await run('delete', 'configmap', 'short');
    await run('create', 'configmap', 'short');
    await expect(client.remove(configMaps, object.metadata, { uid: old.metadata?.uid }, ctx())).rejects.toMatchObject({
      ...{ reason: 'conflict', code: 'conflict' },
    });
    expect(await client.remove(configMaps, object.metadata, {}, ctx())).toBe(true);
    expect(await client.remove(configMaps, object.metadata, {}, ctx())).toBe(false);
    expect(await run('get', 'configmaps')).not.toContain('short');
  });

  test('what the cluster does not serve is unsupported; what the namespace lacks is tried again', async () => {
    const absent = { ...podMetrics, apiVersion: 'absent.example.com/v1' };
    await expect(client.list(absent, { namespace }, ctx())).rejects.toMatchObject({
      ...{ reason: 'unsupported', code: 'api_absent' },
    });
    const lost = { metadata: { name: 'a', namespace: `${namespace}-none` } };
    await expect(client.apply(configMaps, lost, ctx())).rejects.toMatchObject({
      reason: 'transient',
      code: 'not_found',
    });
  });

  test('metrics are read where something serves them', async () => {
    const served = await kubectl(kubeconfig(), 'api-versions');
    if (served.includes(podMetrics.apiVersion)) {
      // Those of a metrics server, which has no definition of a kind.
      const { items } = await client.list(podMetrics, { namespace: 'kube-system' }, ctx());
      expect(items[0]?.containers[0]?.usage.cpu).toMatch(/^\d+[nu]?$/);
      return;
    }
    await kubectlApply(kubeconfig(), metricsDefinition);
    await kubectl(kubeconfig(), 'wait', 'crd/pods.metrics.k8s.io', '--for=condition=Established', '--timeout=30s');
    const measured = {
      ...{ apiVersion: 'metrics.k8s.io/v1beta1', kind: 'PodMetrics', metadata: { name: 'web', namespace } },
      ...{ timestamp: '2026-01-01T00:00:00Z', window: '15s' },
      containers: [{ name: 'web', usage: { cpu: '12m', memory: '34Mi' } }],
    };
    await waitForCluster('the kind', () => kubectlApply(kubeconfig(), measured).then(() => true));
    const { items } = await client.list(podMetrics, { namespace }, ctx());
    expect(items[0]?.containers[0]?.usage).toEqual({ cpu: '12m', memory: '34Mi' });
    await kubectl(kubeconfig(), 'delete', 'crd', 'pods.metrics.k8s.io');
  });

  test('thousands of objects are listed in pages, followed, and removed at once', async () => {
    const labels = { group: 'many' };
    const numbers = Array.from({ length: CONFIG_MAPS }, (_, number) => number);
    const make = async (): Promise<void> => {
      for (let next = numbers.pop(); next !== undefined; next = numbers.pop())
        await client.apply(
          configMaps,
          { metadata: { name: `many-${next}`, namespace, labels } },
          driverContext(60_000),
        );
    };
    await Promise.all(Array.from({ length: 16 }, make));
    const scope = { namespace, labelSelector: 'group=many' };
    const { items } = await client.list(configMaps, scope, driverContext(60_000));
    expect(new Set(items.map(({ metadata }) => metadata?.uid)).size).toBe(CONFIG_MAPS);
    const aborted = new AbortController();
    const followed = client.follow(configMaps, scope, {}, aborted.signal);
    await waitForCluster('all of them', () => followed.outdatedSince === null && followed.objects.size === CONFIG_MAPS);
    await client.removeAll(configMaps, scope, {}, driverContext(120_000));
    await waitForCluster('none of them', () => followed.objects.size === 0);
    expect((await seen('{.items[*].metadata.name}', 'configmaps', '-l', 'group=many')).trim()).toBe('');
    aborted.abort();
    await followed.ended;
  }, 300_000);
});

/** As Pod Security `restricted` wants it. */
const restricted = (args: string[]) => ({
  automountServiceAccountToken: false,
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [
    {
      name: 'web',
      image: PROGRAM_IMAGE,
      args,
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    },
  ],
});

/** The API of metrics with objects that are only stored: a metrics server answers in the same form. */
const metricsDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'pods.metrics.k8s.io',
    annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
  },
  spec: {
    group: 'metrics.k8s.io',
    names: { kind: 'PodMetrics', plural: 'pods', singular: 'podmetrics' },
    scope: 'Namespaced',
    versions: [
      {
        ...{ name: 'v1beta1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};
