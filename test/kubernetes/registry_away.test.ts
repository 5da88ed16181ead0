/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes/pod_state.ts drivers/workload/kubernetes/driver.ts */
// The registry is away for the machines of a cluster while an instance starts: it says so, and runs soon after the
// registry is back, not at the next attempt of the cluster, which is minutes away by then.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnTestCluster } from '../cluster/on_cluster';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { waitFor } from '../support/wait_for';

/** By then the cluster waits for two and a half minutes more. */
const AWAY_MS = 175_000;
const BACK_MS = 75_000;

interface Row {
  id: string;
  status: string;
  status_reason: string | null;
}

describeOnTestCluster('an instance whose registry is away', (cluster) => {
  let service: DeployService;
  let application: TestApplication;
  beforeAll(async () => {
    service = await startOnCluster(cluster());
    application = await service.application({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n',
      'site/index.html': 'here',
    });
    expect((await application.deploy()).status).toBe('active');
  }, 180_000);
  afterAll(() => service?.close(), 180_000);

  const instances = async (): Promise<Row[]> => (await application.get('/instances?limit=100')).data as Row[];
  const running = async (): Promise<number> => (await instances()).filter(({ status }) => status === 'running').length;

  test('runs soon after it is back', async () => {
    const registries = path.join(cluster().directory, 'registries');
    const ours = readdirSync(registries).find((name) => name.endsWith(`:${service.platform.config.registryPort}`));
    const hosts = path.join(registries, ours as string, 'hosts.toml');
    const trusted = readFileSync(hosts, 'utf8');
    writeFileSync(hosts, trusted.replaceAll(/http:\/\/[^"]+/g, 'http://127.0.0.1:9'));
    const [web] = (await application.get('/processes')).data as { id: string }[];
    await application.post(`/processes/${web?.id}/scale`, { instances: 2 });
    await waitFor('the reason', async () =>
      (await instances()).some((one) => /does not reach the registry/.test(one.status_reason ?? '')),
    );
    const [first] = (await instances()).filter(({ status }) => status === 'starting');
    await sleep(AWAY_MS);
    expect(await running()).toBe(1);
    writeFileSync(hosts, trusted);
    await waitFor('both', async () => (await running()) === 2, BACK_MS);
    expect((await instances()).map(({ id }) => id)).not.toContain(first?.id);
  }, 400_000);
});
