// A service that runs its applications on a cluster of this machine, with a registry that the nodes reach.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { loadKubeconfig } from '../../../drivers/kubernetes/client/load_access';
import { clusterNetwork } from '../../cluster/network';
import type { ClusterOfMachine } from '../../cluster/on_cluster';
import { busyboxLayer, pushImage } from '../builds/images';
import { startDeployService, type DeployService } from '../deployments/deploy';
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
  const host = await hostOfCluster(cluster);
  const registries = path.join(cluster.directory, 'registries', `${host}:${port}`);
  mkdirSync(registries, { recursive: true });
  writeFileSync(
    path.join(registries, 'hosts.toml'),
    `server = "http://${host}:${port}"\n[host."http://${host}:${port}"]\n  capabilities = ["pull", "resolve"]\n`,
  );
  const started = await startDeployService({
    ...{ WORKLOADS: 'kubernetes', KUBECONFIG: cluster.kubeconfig, KUBERNETES_INGRESS_ADDRESSES: host },
    ...{ REGISTRY_PORT: String(port), REGISTRY_LISTEN: '0.0.0.0', REGISTRY_URL_FOR_NODES: `http://${host}:${port}` },
    KUBERNETES_NAMESPACE_PREFIX: `test-${process.pid}-${port}`,
    RELEASE_BASE_IMAGE: `localhost:${port}/bases/busybox:1`,
    ...settings,
  });
  const made = await started.call('POST', '/v2/registries', {
    body: { name: 'bases' },
    headers: { Prefer: 'wait=20' },
  });
  expect([made.status, made.body.status]).toEqual([201, 'active']);
  const tenant = startRegistryClient({ port, username: 'owner', password: started.key });
  await pushImage(tenant, 'bases/busybox', '1', { layers: [...layers, await busyboxLayer()], gzip: true });
  return started;
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
