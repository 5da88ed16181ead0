// What stands around the instances of an application: runs, previews, domains, volumes, and its end.
import { visitHost } from '../../support/deployments/deploy';
import { runEnded, runLog, startRun } from '../../support/runs/runs';
import { waitFor } from '../../support/wait_for';
import {
  CHANGED_WITHIN_MS,
  deployed,
  instancesOf,
  onlyRunning,
  siteOf,
  type InstanceBody,
  type WorkloadBench,
  startsOf,
} from './bench';

const TEST_MS = 240_000;

/** Each start adds a line. */
const counting = {
  Procfile: 'web: sh web.sh\n',
  'web.sh': 'echo start >> /data/starts.txt && echo ok > /data/index.html\nexec busybox httpd -f -p "$PORT" -h /data\n',
};

/** To be called where tests are declared. */
export function describeSurroundings(bench: WorkloadBench): void {
  test(
    'a run has the files and the variables of the release in service, its exit code and its output',
    async () => {
      const application = await bench.service().application(siteOf('one'));
      await bench
        .service()
        .call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value: 'hello' } });
      await deployed(application);
      const { id } = await startRun(application, 'echo $GREETING from $(cat version.txt); exit 3');
      expect(await runEnded(application, id, CHANGED_WITHIN_MS)).toMatchObject({ status: 'failed', exit_code: 3 });
      expect(await runLog(application, id)).toEqual(['hello from one']);
    },
    TEST_MS,
  );

  test(
    'a preview serves its branch at its own address, beside the application, and goes without a trace',
    async () => {
      const service = bench.service();
      const application = await service.application(siteOf('main'));
      await deployed(application);
      service.git.commit(application.name, siteOf('branch'), { branch: 'feature' });
      const preview = await application.post('/previews', { branch: 'feature' });
      await waitFor(
        'the preview',
        async () => (await application.get(`/previews/${preview.id}`)).status === 'running',
        CHANGED_WITHIN_MS,
      );
      const { hostname } = new URL(preview.url);
      const visit = () => visitHost(service.platform.config.ingressPort, hostname);
      expect([(await visit()).body, (await application.visit()).body]).toEqual(['branch', 'main']);
      const ids = await idsOf(service.sql, application.id);
      await service.call('DELETE', `/v2/applications/${application.id}/previews/${preview.id}`);
      await waitFor(
        'no row',
        async () => (await service.sql('select 1 from previews where id = $1', [preview.id])).length === 0,
        CHANGED_WITHIN_MS,
      );
      expect((await visit()).status).toBe(404);
      expect((await application.visit()).body).toBe('main');
      const own = ids.filter(({ preview_id }) => preview_id === preview.id).map(({ id }) => id);
      expect(own.length).toBeGreaterThan(1);
      expect(await bench.leftOf([preview.id, ...own])).toEqual([]);
    },
    TEST_MS,
  );

  test(
    'a domain that has been proven leads to the instances',
    async () => {
      const service = bench.service();
      const application = await service.application(siteOf('one'));
      await deployed(application);
      const hostname = `${application.name}.example.org`;
      const visit = () => visitHost(service.platform.config.ingressPort, hostname);
      const made = await service.call('POST', `/v2/applications/${application.id}/domains`, { body: { hostname } });
      expect(made.status).toBe(201);
      expect((await visit()).status).toBe(404);
      await waitFor('an answer', async () => {
        // A check that has begun before writes what it has found.
        await service.sql(`update domains set status = 'active', next_at = null where id = $1`, [made.body.id]);
        return (await visit()).body === 'one';
      });
    },
    TEST_MS,
  );

  test(
    'the files of a volume outlive instances and releases, and go with the volume',
    async () => {
      const service = bench.service();
      const application = await service.application(counting);
      const made = await service.call('POST', '/v2/volumes', {
        body: { name: 'files', size_gb: 1, application_id: application.id, mount_path: '/data' },
      });
      expect(made.status).toBe(201);
      await deployed(application);
      expect(await startsOf(application)).toBe(1);
      await application.post('/restart', {});
      await waitFor('a second start', async () => (await startsOf(application)) === 2, CHANGED_WITHIN_MS);
      application.push({ 'other.txt': 'another version' });
      await deployed(application);
      expect(await startsOf(application)).toBe(3);
      await service.call('PATCH', `/v2/volumes/${made.body.id}`, { body: { application_id: null } });
      await service.call('DELETE', `/v2/applications/${application.id}`);
      await service.call('DELETE', `/v2/volumes/${made.body.id}`);
      await waitFor(
        'its end',
        async () => (await service.call('GET', `/v2/volumes/${made.body.id}`)).status === 404,
        CHANGED_WITHIN_MS,
      );
      await waitFor('nothing left', async () => (await bench.leftOf([made.body.id])).length === 0, CHANGED_WITHIN_MS);
    },
    TEST_MS,
  );

  test(
    'deleting an application ends its instances and leaves nothing',
    async () => {
      const service = bench.service();
      const application = await service.application(siteOf('one'));
      await deployed(application);
      await onlyRunning(application, 'web', 1);
      const { id: run } = await startRun(application, 'sleep 600');
      const instances = (await instancesOf(application)).map(({ id }: InstanceBody) => id);
      const ids = (await idsOf(service.sql, application.id)).map(({ id }) => id);
      expect((await service.call('DELETE', `/v2/applications/${application.id}`)).status).toBe(204);
      await waitFor(
        'no row',
        async () => (await service.sql('select 1 from applications where id = $1', [application.id])).length === 0,
        CHANGED_WITHIN_MS,
      );
      expect((await application.visit()).status).toBe(404);
      expect(await bench.leftOf([application.id, run, ...instances, ...ids])).toEqual([]);
    },
    TEST_MS,
  );
}

type Sql = <Row>(text: string, values?: unknown[]) => Promise<Row[]>;

/** Of all that an application has made which may exist outside of the database. */
function idsOf(sql: Sql, applicationId: string): Promise<{ id: string; preview_id: string | null }[]> {
  return sql(
    `select id, preview_id from deployments where application_id = $1
      union all select id, preview_id from releases where application_id = $1
      union all select id, preview_id from workloads where application_id = $1
      union all select id, preview_id from instances where application_id = $1`,
    [applicationId],
  );
}
