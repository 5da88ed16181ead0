/** @tier heavy @quarter 2 @covers drivers/workload jobs/applications server/agents/workloads */
// The suite of workloads with the engine of a real cluster.
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import { describeWorkloads } from '../conformance/workloads/workloads';
import { leftOvers, type DeployService } from '../support/deployments/deploy';
import { addDisk, removeDisk } from '../support/kubernetes/disk';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';

const OBJECTS = 'deployments,replicasets,jobs,pods,secrets,persistentvolumeclaims,poddisruptionbudgets,networkpolicies';
const storageClass = `workloads-${process.pid}`;

let service: DeployService;

describeOnClusterOfMachine('workloads of a cluster', (cluster) => {
  beforeAll(async () => {
    await addDisk(cluster(), storageClass);
    service = await startOnCluster(cluster(), { settings: { KUBERNETES_STORAGE_CLASS: storageClass } });
  }, 60_000);
  afterAll(async () => {
    await service?.close();
    await removeDisk(cluster(), storageClass);
  }, 180_000);

  /** Lines of kubectl, each with all labels. */
  const objects = async (): Promise<string[]> => {
    const namespace = `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;
    const shown = ['--show-labels', '--no-headers'];
    return (await kubectl(cluster().kubeconfig, 'get', OBJECTS, '-n', namespace, ...shown)).split('\n');
  };

  describeWorkloads({
    capabilities: { releaseCommandWritesFiles: false, namesInstances: false },
    service: () => service,
    async leftOf(ids) {
      const found = [...(await objects()), ...leftOvers(service.runtimeDir)];
      return found.filter((name) => ids.some((id) => name.includes(id) || name.includes(id.replace('_', '-'))));
    },
  });
});
