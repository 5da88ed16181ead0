/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes jobs/applications/workload */
// Namespaces of projects on a real cluster, among operators who edit, delete and own things of the same names.
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../core/driver';
import { job as workloadJob } from '../../jobs/applications/workload';
import type { Drivers, HostDrivers } from '../../jobs/job';
import { openClusterWorkloads } from '../../server/platform/cluster';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl, kubectlApply } from '../cluster/kubectl';
import { onlyRunning, scale } from '../conformance/workloads/bench';
import { GIVEN_UP_SOON, type DeployService } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { workloadSample } from '../support/kubernetes/workload_sample';
import { waitFor } from '../support/wait_for';

const SITE = { Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': 'ok' };
const WITHIN_MS = 120_000;
/** The cluster has tried about 164 s after its first attempt, and would again about 164 s later. */
const REFUSED_FOR_MS = 150_000;
const RETRIED_WITHIN_MS = 80_000;
/** After its instances run, the application shows the reason no more. */
const TOLD_WITHIN_MS = 20_000;

let service: DeployService;

describeOnClusterOfMachine('namespaces of projects', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const apply = (...objects: object[]): Promise<void> => kubectlApply(cluster().kubeconfig, ...objects);
  const prefix = (): string => service.platform.config.kubernetesNamespacePrefix;
  const namespace = (): string => `${prefix()}-${service.project.replace('_', '-')}`;
  const pods = (path: string): Promise<string> => run('-n', namespace(), 'get', 'quota', 'platform', '-o', path);
  /** Pods that end count in a quota until they have gone, and its count is a moment late. */
  const podsAtRest = (): Promise<number> =>
    waitFor(
      'a quota that counts the pods, none of which ends',
      async () => {
        const all = await run(
          ...['-n', namespace(), 'get', 'pods', '-o'],
          'jsonpath={range .items[*]}{.status.phase} {.metadata.deletionTimestamp}{"\\n"}{end}',
        );
        const found = all.split('\n').filter((line) => line !== '');
        const used = Number(await pods('jsonpath={.status.used.pods}'));
        return found.every((line) => line === 'Running ') && used === found.length && used;
      },
      WITHIN_MS,
    );
  /** No pod more than there are. Until a quota has counted, pods are refused for another reason. */
  const leaveNoRoom = async (): Promise<void> => {
    const hard = { pods: String(await podsAtRest()) };
    const metadata = { name: 'team', namespace: namespace() };
    await apply({ apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard } });
    const counted = ['-n', namespace(), 'get', 'quota', 'team', '-o', 'jsonpath={.status.used.pods}'];
    await waitFor('what is used of it', async () => (await run(...counted)) === hard.pods, WITHIN_MS);
  };
  const wake = (): Promise<unknown> => service.sql('update workloads set next_at = now()');

  beforeAll(async () => {
    service = await startOnCluster(cluster());
  }, 60_000);
  afterEach(() => run('delete', 'quota', 'team', '-n', namespace(), '--ignore-not-found'));
  afterAll(() => service?.close(), 120_000);

  test('a quota that somebody edits is put back, and never stands in the way of a deployment', async () => {
    const application = await service.application(SITE);
    expect((await application.deploy()).status).toBe('active');
    const hard = await pods('jsonpath={.spec.hard.pods}');
    expect(Number(hard)).toBeGreaterThan(1_000);
    await run('-n', namespace(), 'patch', 'quota', 'platform', '--type=merge', '-p', '{"spec":{"hard":{"pods":"1"}}}');
    await waitFor(
      'the quota of before',
      async () => {
        await wake();
        return (await pods('jsonpath={.spec.hard.pods}')) === hard;
      },
      WITHIN_MS,
    );
    application.push({ ...SITE, 'site/index.html': 'two' });
    expect((await application.deploy()).status).toBe('active');
  }, 300_000);

  test('what a quota of somebody refuses is told by the application and by the deployment', async () => {
    const application = await service.application(SITE, GIVEN_UP_SOON);
    expect((await application.deploy()).status).toBe('active');
    await leaveNoRoom();
    await scale(application, 'web', 2);
    const told = await waitFor(
      'a reason',
      async () => (await application.get()).status_reason as string | null,
      WITHIN_MS,
    );
    expect(told).toMatch(
      /^Process type web: The cluster refuses its instances: the quota `team` of .* exceeded .*pods: 1 more/,
    );
    await scale(application, 'web', 1);
    application.push({ ...SITE, 'site/index.html': 'two' });
    const refused = await application.ended((await application.ask()).id, WITHIN_MS);
    expect(refused.status).toBe('failed');
    expect(refused.status_reason).toContain('the quota `team` of its namespace would be exceeded');
    await run('-n', namespace(), 'delete', 'quota', 'team');
    const last = await application.ended((await application.ask()).id, WITHIN_MS);
    expect([last.status, last.status_reason]).toEqual(['active', null]);
    await waitFor('no reason', async () => (await application.get()).status_reason === null, WITHIN_MS);
  }, 600_000);

  test('instances that a quota has refused for long start soon after there is room', async () => {
    const application = await service.application(SITE);
    expect((await application.deploy()).status).toBe('active');
    await leaveNoRoom();
    await scale(application, 'web', 2);
    await waitFor('a reason', async () => (await application.get()).status_reason !== null, WITHIN_MS);
    await sleep(REFUSED_FOR_MS);
    await run('-n', namespace(), 'delete', 'quota', 'team');
    const roomAt = performance.now();
    await onlyRunning(application, 'web', 2);
    expect(performance.now() - roomAt).toBeLessThan(RETRIED_WITHIN_MS);
    const startedAt = performance.now();
    await waitFor('no reason', async () => (await application.get()).status_reason === null, WITHIN_MS);
    const toldFor = performance.now() - startedAt;
    process.stdout.write(`room for refused pods: told for ${Math.round(toldFor)} ms after they ran\n`);
    expect(toldFor).toBeLessThan(TOLD_WITHIN_MS);
  }, 600_000);

  test('a namespace that is deleted under its application comes back with it', async () => {
    const application = await service.application(SITE);
    expect((await application.deploy()).status).toBe('active');
    await run('delete', 'namespace', namespace(), '--timeout=90s');
    await waitFor(
      'answers',
      async () => {
        await wake();
        return (await application.visit('/')).status === 200;
      },
      WITHIN_MS,
    );
    expect(Number(await pods('jsonpath={.spec.hard.pods}'))).toBeGreaterThan(1_000);
  }, 300_000);

  test('what is left of deleted things goes, but nothing of somebody else', async () => {
    const workloads = await openClusterWorkloads(service.platform.config, () => undefined);
    const kept: string[] = [];
    const sweep = async (): Promise<void> => {
      for (const { list, withoutRow, remove } of workloadJob.leftovers ?? [])
        for await (const batch of list({ host: { workloads } } as unknown as Drivers, driverContext(WITHIN_MS)))
          for (const id of await withoutRow(
            service.platform.database,
            batch.map((one) => one.id),
          ))
            await remove?.(id, { workloads } as HostDrivers, driverContext(WITHIN_MS)).catch((error: Error) =>
              kept.push(error.message),
            );
    };
    const place = (project: string): string => `${prefix()}-${project.replace('_', '-')}`;
    const labelsOf = (project: string) => ({
      ...{ 'platform-api/installation': prefix(), 'platform-api/project': project },
    });
    const namespaceFor = (project: string, name = place(project)) => ({
      ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: labelsOf(project) } },
    });
    const secretIn = (name: string, labels: object) => ({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'left', namespace: name, labels } },
    });
    const somewhere = `${prefix()}-of-somebody`;
    await apply(namespaceFor('prj_gone'), namespaceFor('prj_shared'), namespaceFor('prj_named', somewhere));
    const ofWorkload = { ...labelsOf('prj_gone'), 'platform-api/workload': 'wkl_gone' };
    await apply(secretIn(place('prj_gone'), ofWorkload), secretIn(place('prj_shared'), {}));
    // With the labels of a workload, in a namespace that is none of a project.
    await apply(secretIn(somewhere, ofWorkload));
    const left = async (): Promise<string> =>
      (await run('get', 'namespaces', '-o', 'name'))
        .split('\n')
        .flatMap((name) => name.split(`namespace/${prefix()}-`)[1] ?? [])
        .sort()
        .join();
    const own = service.project.replace('_', '-');
    await sweep();
    await waitFor('one less', async () => (await left()) === `of-somebody,${own},prj-shared`, WITHIN_MS);
    expect(kept).toEqual([expect.stringContaining('Secret left, which this platform did not create')]);
    await run('-n', place('prj_shared'), 'delete', 'secret', 'left');
    await sweep();
    await waitFor('both gone', async () => (await left()) === `of-somebody,${own}`, WITHIN_MS);
    expect(await run('-n', somewhere, 'get', 'secrets', '-o', 'name')).toContain('left');
    await run('delete', 'namespace', somewhere);
    await workloads.close();
  }, 300_000);

  test('one of somebody else with the name of a project is never touched', async () => {
    const name = `${prefix()}-prj-1`;
    await run('create', 'namespace', name);
    const workloads = await openClusterWorkloads(service.platform.config, () => undefined);
    await expect(workloads.ensure(workloadSample(), driverContext(20_000))).rejects.toMatchObject({
      reason: 'conflict',
    });
    expect(await workloads.removeProject('prj_1', driverContext(20_000))).toContain('not of this installation');
    expect(await run('-n', name, 'get', 'quota,networkpolicy,deployments,secrets', '-o', 'name')).toBe('');
    await workloads.close();
    await run('delete', 'namespace', name);
  }, 120_000);
});
