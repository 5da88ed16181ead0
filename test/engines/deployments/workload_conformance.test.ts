/** @tier heavy @quarter 1 @covers jobs/applications jobs/deployments models/applications/stack.ts */
// The suite of workloads with the engine of a host: its instances are units of this machine.
import { leftOvers, startDeployService, type DeployService } from '../../support/deployments/deploy';
import { describeWorkloads } from '../../conformance/workloads/workloads';
import { needs } from '../../support/runner/programs';

let service: DeployService;

needs('bwrap', 'busybox').describe('workloads of a host', () => {
  beforeAll(async () => {
    service = await startDeployService();
  }, 60_000);
  afterAll(() => service?.close(), 120_000);

  describeWorkloads({
    capabilities: { releaseCommandWritesFiles: true, namesInstances: true },
    service: () => service,
    leftOf: (ids) =>
      Promise.resolve(leftOvers(service.runtimeDir).filter((name) => ids.some((id) => name.includes(id)))),
  });
});
