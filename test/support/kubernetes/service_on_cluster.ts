// A service that runs its applications on a cluster of this machine, with a registry that the nodes reach.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { loadKubeconfig } from '../../../drivers/kubernetes/client/load_access';
import { clusterNetwork } from '../../cluster/network';
import type { ClusterOfMachine } from '../../cluster/on_cluster';
import { busyboxLayer, pushImage } from '../builds/images';
import { eventually, startDeployService, type DeployService } from '../deployments/deploy';
import { startPlant, type Plant } from '../processes/bad_days_program';
import { freePort } from '../processes/free_port';
import { startRegistryClient } from '../registries/registry_client';

export interface OnCluster {
  /** Below `busybox` in the base image of releases. */
  layers?: Buffer[];
  settings?: Record<string, string>;
}

/** A service whose applications run on the cluster. Several share one: each has namespaces of its own. */
export async function startOnCluster(
  cluster: ClusterOfMachine,
  { layers = [], settings = {} }: OnCluster = {},
): Promise<DeployService> {
  const port = await freePort();
  const started = await startDeployService({ ...(await settingsFor(cluster, port)), ...settings });
  await pushBaseImage(started, started.key, port, layers);
  return started;
}

/** The same in a process of its own. */
export async function startPlantOnCluster(cluster: ClusterOfMachine): Promise<Plant> {
  const port = await freePort();
  const plant = await startPlant(await settingsFor(cluster, port));
  const { key } = JSON.parse(readFileSync(path.join(plant.dataDir, 'first-key.json'), 'utf8')) as { key: string };
  await pushBaseImage(plant, key, port, []);
  return plant;
}

/** Nodes of the cluster pull from the registry at this port. */
export async function settingsFor(cluster: ClusterOfMachine, port: number): Promise<Record<string, string>> {
  const host = await hostOfCluster(cluster);
  const registries = path.join(cluster.directory, 'registries', `${host}:${port}`);
  mkdirSync(registries, { recursive: true });
  writeFileSync(
    path.join(registries, 'hosts.toml'),
    `server = "http://${host}:${port}"\n[host."http://${host}:${port}"]\n  capabilities = ["pull", "resolve"]\n`,
  );
  return {
    ...{ WORKLOADS: 'kubernetes', KUBECONFIG: cluster.kubeconfig, KUBERNETES_INGRESS_ADDRESSES: host },
    ...{ REGISTRY_PORT: String(port), REGISTRY_LISTEN: '0.0.0.0', REGISTRY_URL_FOR_NODES: `http://${host}:${port}` },
    KUBERNETES_NAMESPACE_PREFIX: `test-${process.pid}-${port}`,
    RELEASE_BASE_IMAGE: `localhost:${port}/bases/busybox:1`,
  };
}

/** What releases of such a service are made on. */
export async function pushBaseImage(
  service: Pick<DeployService, 'call'>,
  key: string,
  port: number,
  layers: Buffer[],
): Promise<void> {
  const { status, body } = await service.call('POST', '/v2/registries', { body: { name: 'bases' } });
  expect(status).toBe(201);
  await eventually(
    'the registry',
    async () => (await service.call('GET', `/v2/registries/${body.id}`)).body.status === 'active',
  );
  const tenant = startRegistryClient({ port, username: 'owner', password: key });
  await pushImage(tenant, 'bases/busybox', '1', { layers: [...layers, await busyboxLayer()], gzip: true });
}

/** Address of this machine that nodes and pods reach: that of the API server. */
export async function hostOfCluster({ kubeconfig }: ClusterOfMachine): Promise<string> {
  return (await loadKubeconfig(kubeconfig)).server.hostname;
}

/** Addresses of all its pods, as this machine sees them. */
export async function podsOfCluster(cluster: ClusterOfMachine): Promise<string> {
  const [, , slot] = (await hostOfCluster(cluster)).split('.');
  return clusterNetwork(Number(slot)).pods;
}
