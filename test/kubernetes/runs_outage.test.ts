/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes/task jobs/runs/run server/agents/workloads */
// The API server of the cluster is away while runs print, end and are asked for.
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { runEnded, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;
const AWAY_MS = 20_000;

describeOnTestCluster('runs of a cluster whose API server is away', (cluster) => {
  let service: DeployService;
  let application: TestApplication;
  const messages = async (id: string): Promise<string[]> =>
    (await application.get(`/runs/${id}/logs?order=asc&limit=1000`)).data.map(
      ({ message }: { message: string }) => message,
    );

  beforeAll(async () => {
    service = await startOnCluster(cluster());
    application = await service.application({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n',
      'site/index.html': 'ok',
    });
    const { status, status_reason } = await application.deploy();
    expect([status, status_reason]).toEqual(['active', null]);
  }, 180_000);
  afterAll(() => service?.close(), 120_000);

  test('lose no line and no exit code, and those that are asked for meanwhile start when it is back', async () => {
    const count = 'i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo line $i; sleep 0.3; done; exit 42';
    const printing = await startRun(application, count);
    const ending = await startRun(application, 'echo begun; sleep 8; echo last; exit 5');
    await waitFor('both print', async () => (await messages(ending.id)).includes('begun'), WITHIN_MS);
    await waitFor('both print', async () => (await messages(printing.id)).length > 0, WITHIN_MS);
    await cluster().stopApiServer();
    const asked = await startRun(application, 'echo late; exit 3');
    await sleep(AWAY_MS);
    expect((await application.visit('/')).status).toBe(200);
    await cluster().startApiServer();
    expect(await runEnded(application, ending.id, WITHIN_MS)).toMatchObject({ status: 'failed', exit_code: 5 });
    expect(await runEnded(application, asked.id, WITHIN_MS)).toMatchObject({ status: 'failed', exit_code: 3 });
    expect(await runEnded(application, printing.id, WITHIN_MS)).toMatchObject({ status: 'failed', exit_code: 42 });
    expect(await messages(ending.id)).toEqual(['begun', 'last']);
    expect(await messages(asked.id)).toEqual(['late']);
    expect(await messages(printing.id)).toEqual(Array.from({ length: 100 }, (_, index) => `line ${index + 1}`));
  }, 300_000);
});
