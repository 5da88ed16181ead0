// What a service is told so that nodes of a cluster of this machine run its applications.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { loadKubeconfig } from '../../../drivers/kubernetes/client/load_access';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { clusterNetwork } from '../../cluster/network';
import { pushImage } from '../builds/images';
import type { DeployService } from '../deployments/deploy';
import { startRegistryClient } from '../registries/registry_client';
import { waitFor } from '../wait_for';

/** Nodes of the cluster pull from the registry at this port. */
export async function settingsFor(cluster: ClusterOfMachine, port: number): Promise<Record<string, string>> {
  const host = await hostOfCluster(cluster);
  trustRegistry(cluster, `${host}:${port}`);
  return {
    ...{ WORKLOADS: 'kubernetes', KUBECONFIG: cluster.kubeconfig, KUBERNETES_INGRESS_ADDRESSES: host },
    ...{ REGISTRY_PORT: String(port), REGISTRY_LISTEN: '0.0.0.0', REGISTRY_URL_FOR_NODES: `http://${host}:${port}` },
    KUBERNETES_NAMESPACE_PREFIX: `test-${process.pid}-${port}`,
    RELEASE_BASE_IMAGE: `localhost:${port}/bases/busybox:1`,
  };
}

/** Nodes pull from it without TLS. @param registry host and port */
export function trustRegistry({ directory }: ClusterOfMachine, registry: string): void {
  const registries = path.join(directory, 'registries', registry);
  mkdirSync(registries, { recursive: true });
  writeFileSync(
    path.join(registries, 'hosts.toml'),
    `server = "http://${registry}"\n[host."http://${registry}"]\n  capabilities = ["pull", "resolve"]\n`,
  );
}

/** The base image of releases. */
export async function pushBaseImage(
  service: Pick<DeployService, 'call'>,
  key: string,
  port: number,
  layers: Buffer[],
): Promise<void> {
  const { status, body } = await service.call('POST', '/v2/registries', { body: { name: 'bases' } });
  if (status !== 201) throw new Error(`The registry was answered with ${status}.`);
  await waitFor(
    'the registry',
    async () => (await service.call('GET', `/v2/registries/${body.id}`)).body.status === 'active',
  );
  const tenant = startRegistryClient({ port, username: 'owner', password: key });
  await pushImage(tenant, 'bases/busybox', '1', { layers, gzip: true });
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
