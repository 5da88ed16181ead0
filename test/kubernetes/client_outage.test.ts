/** @tier heavy @quarter 2 @covers drivers/kubernetes */
// What the client follows stays true: an API server that is away or hangs, and connections that are cut all the time.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConfigMap } from 'kubernetes-types/core/v1';
import { driverContext } from '../../core/driver';
import type { ClusterAccess } from '../../drivers/kubernetes/client/access';
import { openKubernetesClient, type KubernetesClient } from '../../drivers/kubernetes/client/client';
import { loadKubeconfig } from '../../drivers/kubernetes/client/load_access';
import { resourceTypes } from '../../drivers/kubernetes/client/resource_type';
import { kubectl } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import { startCuttingProxy } from '../support/kubernetes/cutting_proxy';
import { waitForCluster } from '../support/kubernetes/wait_for_cluster';

const { configMaps } = resourceTypes;
const AWAY_MS = 20_000;
const CUTS_MS = 30_000;

describeOnTestCluster('what is followed', (cluster) => {
  const namespace = 'default';
  let access: ClusterAccess;
  let client: KubernetesClient;
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const label = async (name: string, value: string): Promise<string> =>
    run('patch', 'configmap', name, '--type=merge', '-p', JSON.stringify({ data: { value } }));

  /** What kubectl sees, in the form of `stateOf`. */
  async function witnessed(): Promise<string[]> {
    const { items } = JSON.parse(await run('get', 'configmaps', '-o', 'json')) as { items: ConfigMap[] };
    return items.map(stateOf).sort();
  }
  const stateOf = ({ metadata, data }: ConfigMap): string => `${metadata?.uid} ${metadata?.name} ${data?.value ?? ''}`;

  function follow(by: KubernetesClient) {
    const aborted = new AbortController();
    const told = { changed: 0, removed: 0, synchronized: 0, failed: [] as string[] };
    const followed = by.follow(
      configMaps,
      { namespace },
      {
        changed: () => (told.changed += 1),
        removed: () => (told.removed += 1),
        synchronized: () => (told.synchronized += 1),
        failed: ({ message }) => told.failed.push(message),
      },
      aborted.signal,
    );
    const end = async (): Promise<void> => {
      aborted.abort();
      await followed.ended;
    };
    const matches = async (): Promise<boolean> =>
      JSON.stringify([...followed.objects.values()].map(stateOf).sort()) === JSON.stringify(await witnessed());
    return { followed, told, end, matches };
  }

  beforeAll(async () => {
    access = await loadKubeconfig(cluster().kubeconfig);
    client = openKubernetesClient(access);
  }, 60_000);
  afterAll(() => client.close());

  test('is true again within seconds of an outage of 20 seconds', async () => {
    await run('create', 'configmap', 'before');
    await run('create', 'configmap', 'removed');
    const { followed, told, end, matches } = follow(client);
    await waitForCluster('both', matches);
    expect(followed.outdatedSince).toBeNull();
    const leftAt = Date.now();
    await cluster().stopApiServer();
    await waitForCluster('the loss to be noticed', () => followed.outdatedSince !== null, 5000);
    expect(followed.outdatedSince).toBeGreaterThanOrEqual(leftAt);
    await sleep(AWAY_MS);
    // Nothing is forgotten meanwhile.
    expect([...followed.objects.values()].map(({ metadata }) => metadata?.name)).toEqual(
      expect.arrayContaining(['before', 'removed']),
    );
    expect(told.failed.length).toBeGreaterThan(3);
    await cluster().startApiServer();
    await run('delete', 'configmap', 'removed');
    await run('create', 'configmap', 'after');
    await waitForCluster('the state of the cluster', async () => followed.outdatedSince === null && matches(), 15_000);
    expect(told.synchronized).toBeGreaterThanOrEqual(2);
    await end();
  }, 120_000);

  test('is true while its connections are cut every two seconds', async () => {
    const proxy = await startCuttingProxy(Number(access.server.port), access.server.hostname);
    const through = { ...access, server: new URL(`https://127.0.0.1:${proxy.port}`), serverName: 'kubernetes' };
    const cut = openKubernetesClient(through);
    const { followed, told, end, matches } = follow(cut);
    await waitForCluster('a first state', matches);
    const cutter = setInterval(() => proxy.cut(), 2000);
    const until = Date.now() + CUTS_MS;
    for (let count = 0; Date.now() < until; count += 1) {
      await run('create', 'configmap', `cut-${count}`);
      await label(`cut-${count}`, String(count));
      if (count > 3) await run('delete', 'configmap', `cut-${count - 3}`);
    }
    clearInterval(cutter);
    await waitForCluster('the state of the cluster', matches, 15_000);
    expect(followed.objects.size).toBeGreaterThan(4);
    expect(told.failed.length).toBeGreaterThan(10);
    expect(told.synchronized).toBeGreaterThan(10);
    await end();
    cut.close();
    proxy.close();
  }, 120_000);

  test('a request to an API server that hangs ends with its time', async () => {
    await cluster().freezeApiServer();
    const startedAt = Date.now();
    await expect(client.version(driverContext(2000))).rejects.toMatchObject({ reason: 'transient', code: 'timeout' });
    expect(Date.now() - startedAt).toBeLessThan(4000);
    await cluster().thawApiServer();
    await client.version(driverContext(30_000));
  }, 60_000);
});
