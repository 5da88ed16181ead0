// A service that runs its applications on a cluster of this machine, with a registry that the nodes reach.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { busyboxLayer } from '../builds/images';
import { startDeployService, type DeployService } from '../deployments/deploy';
import { startPlant, type Plant } from '../processes/bad_days_program';
import { freePort } from '../processes/free_port';
import { pushBaseImage, settingsFor } from './cluster_settings';

export { hostOfCluster, podsOfCluster, pushBaseImage, settingsFor, trustRegistry } from './cluster_settings';

/** A node that had lost the API server takes its time to end pods. */
const CLEARED_WITHIN_MS = 100_000;

interface OnCluster {
  /** Below `busybox` in the base image of releases. */
  layers?: Buffer[];
  /** In the place of busybox. */
  base?: Buffer;
  settings?: Record<string, string>;
}

/** A service whose applications run on the cluster. Several share one: each has namespaces of its own. */
export async function startOnCluster(
  cluster: ClusterOfMachine,
  { layers = [], base, settings = {} }: OnCluster = {},
): Promise<DeployService> {
  const port = await freePort();
  const started = await startDeployService({ ...(await settingsFor(cluster, port)), ...settings }, CLEARED_WITHIN_MS);
  await pushBaseImage(started, started.key, port, [...layers, base ?? (await busyboxLayer())]);
  return started;
}

/** The same in a process of its own. */
export async function startPlantOnCluster(
  cluster: ClusterOfMachine,
  settings: Record<string, string> = {},
): Promise<Plant> {
  const port = await freePort();
  const plant = await startPlant({ ...(await settingsFor(cluster, port)), ...settings });
  const { key } = JSON.parse(readFileSync(path.join(plant.dataDir, 'first-key.json'), 'utf8')) as { key: string };
  await pushBaseImage(plant, key, port, [await busyboxLayer()]);
  return plant;
}
