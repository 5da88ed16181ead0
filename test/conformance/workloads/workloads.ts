// What every engine of workloads does, as users of the API and the ingress see it. An engine ships only if it passes.
import type { WorkloadBench } from './bench';
import { describeDeployments } from './deployments';
import { describeInstances } from './instances';
import { describeSurroundings } from './around';

export type { WorkloadBench } from './bench';

/** To be called where tests are declared. */
export function describeWorkloads(bench: WorkloadBench): void {
  describe('deployments', () => describeDeployments(bench));
  describe('instances', () => describeInstances(bench));
  describe('around instances', () => describeSurroundings(bench));
}
