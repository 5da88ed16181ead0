/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes/task jobs/runs */
// Runs and release commands that a cluster cannot start: they fail with the reason, and leave nothing.
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl, kubectlApply } from '../cluster/kubectl';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { runEnded, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;

let service: DeployService;
let application: TestApplication;

describeOnClusterOfMachine('runs that a cluster cannot start', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const namespace = (): string =>
    `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;
  const refusePods = async (): Promise<void> => {
    const used = await run('-n', namespace(), 'get', 'quota', 'platform', '-o', 'jsonpath={.status.used.pods}');
    await kubectlApply(cluster().kubeconfig, {
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'team', namespace: namespace() } },
      spec: { hard: { pods: used } },
    });
  };
  const reasonOf = (id: string): Promise<string> =>
    waitFor(
      'a reason',
      async () => {
        const [row] = await service.sql<{ status: string; status_reason: string | null }>(
          'select status, status_reason from runs where id = $1',
          [id],
        );
        return row?.status === 'starting' && row.status_reason;
      },
      WITHIN_MS,
    );
  /** As if it had waited for the five minutes that a cluster gets. */
  const passTime = (id: string): Promise<unknown> =>
    service.sql(`update runs set started_at = now() - interval '301 seconds' where id = $1`, [id]);

  beforeAll(async () => {
    service = await startOnCluster(cluster());
    application = await service.application({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n',
      'site/index.html': 'ok',
    });
    expect((await application.deploy()).status).toBe('active');
  }, 180_000);
  afterAll(() => service?.close(), 120_000);

  test('a quota: the run says so while it waits, and fails with it', async () => {
    await refusePods();
    const { id } = await startRun(application, 'true', { timeout_seconds: 3_600 });
    expect(await reasonOf(id)).toContain('the quota `team` of its namespace would be exceeded (pods: 1 more');
    await passTime(id);
    expect(await runEnded(application, id, WITHIN_MS)).toMatchObject({
      ...{ status: 'failed', exit_code: null },
      status_reason: expect.stringContaining('the quota `team`'),
    });
    await run('-n', namespace(), 'delete', 'quota', 'team');
  }, 240_000);

  test('a release command: its deployment fails with it, and the previous version serves', async () => {
    await refusePods();
    application.push({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\nrelease: true\n',
      'site/index.html': 'two',
    });
    const { id } = await application.ask();
    const [release] = await waitFor(
      'its run',
      async () => {
        const rows = await service.sql<{ id: string }>(
          `select id from runs where trigger_type = 'release' and status = 'starting'`,
        );
        return rows.length === 1 && rows;
      },
      WITHIN_MS,
    );
    await reasonOf(release?.id ?? '');
    await passTime(release?.id ?? '');
    const { status, status_reason } = await application.ended(id, WITHIN_MS);
    expect([status, status_reason]).toEqual(['failed', expect.stringContaining('the quota `team`')]);
    expect((await application.visit('/')).body).toBe('ok');
    await run('-n', namespace(), 'delete', 'quota', 'team');
  }, 240_000);

  test('an image that has gone', async () => {
    const digest = `@sha256:${'0'.repeat(64)}`;
    await service.sql(`update releases set image = regexp_replace(image, '@sha256:.*', $1) where image is not null`, [
      digest,
    ]);
    const { id } = await startRun(application, 'true', { timeout_seconds: 3_600 });
    expect(await reasonOf(id)).toMatch(/^The cluster cannot pull the image of the release: /);
    await passTime(id);
    expect(await runEnded(application, id, WITHIN_MS)).toMatchObject({
      ...{ status: 'failed', exit_code: null },
      status_reason: expect.stringContaining('cannot pull the image'),
    });
    await waitFor(
      'nothing of it',
      async () => {
        await service.sql(`update runs set finished_at = now() - interval '2 minutes', next_at = now() where id = $1`, [
          id,
        ]);
        return (await run('get', 'jobs,pods', '-A', '-l', `platform-api/run=${id}`, '-o', 'name')) === '';
      },
      WITHIN_MS,
    );
  }, 240_000);
});
