/** @tier heavy @quarter 2 @covers jobs/failure_policy.ts jobs/workflow.ts jobs/applications/workload.ts */
// The API server of the cluster is away while something is made of it: no resource fails, and all of them say why.
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { addDisk, removeDisk } from '../support/kubernetes/disk';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { lostOf, startTimedLoad } from '../support/kubernetes/timed_load';
import { waitFor } from '../support/wait_for';

const SOON_MS = 20_000;
const WITHIN_MS = 90_000;
/** Longer than the controller of machines waits for a sign of them (40 s). */
const SILENT_MS = 90_000;
const HEARD_MS = 45_000;
const AWAY =
  /^The API server of the cluster (cannot be reached|did not answer)[^]* waits for it and goes on by itself\.$/;
const storageClass = `away-${process.pid}`;
const site = (text: string) => ({ Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': text });

describeOnTestCluster('resources whose cluster is away', (cluster) => {
  let service: DeployService;
  let application: TestApplication;
  beforeAll(async () => {
    await addDisk(cluster(), storageClass);
    service = await startOnCluster(cluster(), { settings: { KUBERNETES_STORAGE_CLASS: storageClass } });
    application = await service.application(site('before'));
    const { status, status_reason } = await application.deploy();
    expect([status, status_reason]).toEqual(['active', null]);
  }, 180_000);
  afterAll(async () => {
    await service?.close();
    await removeDisk(cluster(), storageClass);
  }, 120_000);

  const read = async (place: string): Promise<Record<string, string | null>> =>
    (await service.call('GET', place)).body as Record<string, string | null>;
  const actions = async (id: string): Promise<string[]> =>
    ((await read(`/v2/projects/${service.project}/activity?resource_id=${id}`)).data as unknown as { action: string }[])
      .map(({ action }) => action)
      .reverse();

  test('wait for it and say so, in the reason, the log and the activity, and go on when it is back', async () => {
    await cluster().stopApiServer();
    const made = await service.call('POST', '/v2/volumes', { body: { name: 'later', size_gb: 1 } });
    expect(made.status).toBe(201);
    const volume = `/v2/volumes/${(made.body as { id: string }).id}`;
    application.push(site('after'));
    const asked = await application.ask();
    const reasonOf = async (place: string): Promise<string | null> => (await read(place)).status_reason ?? null;
    const deployment = `/v2/applications/${application.id}/deployments/${asked.id}`;
    await waitFor('the reason of the volume', async () => AWAY.test((await reasonOf(volume)) ?? ''), SOON_MS);
    await waitFor('the reason of the deployment', async () => AWAY.test((await reasonOf(deployment)) ?? ''), WITHIN_MS);
    expect((await service.call('GET', '/readyz')).status).toBe(200);
    expect((await application.visit()).body).toBe('before');
    await cluster().startApiServer();
    expect(await application.ended(asked.id, WITHIN_MS)).toMatchObject({ status: 'active', status_reason: null });
    expect((await application.visit()).body).toBe('after');
    await waitFor('the volume', async () => (await read(volume)).status === 'available', WITHIN_MS);
    expect(await reasonOf(volume)).toBeNull();
    expect(await actions((await read(volume)).id as string)).toEqual([
      'volume.created',
      'volume.waiting',
      'volume.resumed',
      'volume.available',
    ]);
    const { data: lines } = await application.get(`/deployments/${asked.id}/logs?order=asc&limit=1000`);
    const texts = (lines as { message: string }[]).map(({ message }) => message);
    expect(texts.filter((text) => AWAY.test(text))).toHaveLength(1);
    expect(texts).toContain('It answers again.');
    expect(await reasonOf(`/v2/applications/${application.id}`)).toBeNull();
  }, 300_000);

  test('serve while it is away for longer than machines may be silent, and when it comes back', async () => {
    const load = startTimedLoad(service.platform.config.ingressPort, application.host);
    await cluster().stopApiServer();
    await sleep(SILENT_MS);
    await cluster().startApiServer();
    await sleep(HEARD_MS);
    const visits = await load.stop();
    process.stdout.write(`API server away ${SILENT_MS / 1000} s: ${visits.length} requests\n`);
    expect(visits.length).toBeGreaterThan(1_000);
    expect(lostOf(visits)).toEqual([]);
  }, 300_000);
});
