// The ingress process, where instances are pods of a cluster: it follows them itself, and serves on while the control
// plane is away.
import { runIngressProcess } from '../../../engines/ingress/process/program';
import { followCluster } from './followed_pods';

void runIngressProcess(async ({ ingress, settings: { cluster }, log }) =>
  cluster ? (await followCluster(ingress, cluster, log)).ingress : ingress,
);
