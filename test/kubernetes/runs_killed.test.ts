/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes/task jobs/runs/run server/agents/workloads */
// The control plane is killed with -9 while runs of a cluster are started, print, end and are canceled.
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import type { TestApplication } from '../support/deployments/deploy';
import { startPlantOnCluster } from '../support/kubernetes/service_on_cluster';
import type { Plant } from '../support/processes/bad_days_program';
import { runEnded, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 90_000;

describeOnClusterOfMachine('runs of a cluster whose control plane is killed', (cluster) => {
  let plant: Plant;
  let application: TestApplication;
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const objectsOf = async (id: string): Promise<string[]> =>
    (await run('get', 'jobs,pods,secrets', '-A', '-l', `platform-api/run=${id}`, '-o', 'name'))
      .split('\n')
      .filter(Boolean);
  const messages = async (id: string): Promise<string[]> =>
    (await application.get(`/runs/${id}/logs?order=asc&limit=1000`)).data.map(
      ({ message }: { message: string }) => message,
    );

  beforeAll(async () => {
    plant = await startPlantOnCluster(cluster());
    application = await plant.application({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n',
      'site/index.html': 'ok',
    });
    const { status, status_reason } = await application.ended((await application.ask()).id, WITHIN_MS);
    expect([status, status_reason]).toEqual(['active', null]);
  }, 180_000);
  afterAll(() => plant?.close(), 120_000);

  test('each is started once and each of its lines is in the log once', async () => {
    const loop = 'i=$((i+1)); echo line $i; [ $((i % 20)) = 0 ] && sleep 0.3';
    const { id } = await startRun(application, `i=0; while [ $i -lt 600 ]; do ${loop}; done; exit 42`);
    for (const ms of [0, 50, 200, 500, 1_000, 2_000]) {
      await sleep(ms);
      await plant.kill();
      await plant.start();
    }
    expect(await runEnded(application, id, WITHIN_MS)).toMatchObject({ status: 'failed', exit_code: 42 });
    const lines = Array.from({ length: 600 }, (_, index) => `line ${index + 1}`);
    expect(await messages(id)).toEqual(lines);
    expect((await objectsOf(id)).filter((name) => name.startsWith('pod/'))).toHaveLength(1);
  }, 240_000);

  test('one that ends meanwhile is found, and one that is canceled meanwhile ends', async () => {
    const ending = await startRun(application, 'sleep 2; echo last; exit 5');
    const stubborn = `trap 'echo leaving; exit 7' TERM; echo up; while :; do sleep 0.2; done`;
    const canceled = await startRun(application, stubborn);
    await waitFor('both run', async () => (await messages(canceled.id)).includes('up'), WITHIN_MS);
    await application.post(`/runs/${canceled.id}/cancel`);
    await plant.kill();
    await sleep(3_000);
    await plant.start();
    expect(await runEnded(application, ending.id, WITHIN_MS)).toMatchObject({ status: 'failed', exit_code: 5 });
    expect(await messages(ending.id)).toEqual(['last']);
    expect(await runEnded(application, canceled.id, WITHIN_MS)).toMatchObject({ status: 'canceled', exit_code: 7 });
    expect(await messages(canceled.id)).toEqual(['up', 'leaving']);
  }, 240_000);

  test('what has no row is swept, and nothing of others', async () => {
    const { id } = await startRun(application, 'sleep 600');
    await waitFor('its pod', async () => (await objectsOf(id)).some((name) => name.startsWith('pod/')), WITHIN_MS);
    await plant.kill();
    await plant.sql('delete from runs where id = $1', [id]);
    await plant.start();
    await waitFor('no objects', async () => (await objectsOf(id)).length === 0, WITHIN_MS);
  }, 240_000);
});
