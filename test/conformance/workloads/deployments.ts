// Versions that come and go: what serves, and that no request is lost meanwhile.
import { GIVEN_UP_SOON } from '../../support/deployments/deploy';
import { waitFor } from '../../support/wait_for';
import {
  CHANGED_WITHIN_MS,
  deployed,
  environmentOf,
  instancesOf,
  onlyRunning,
  siteOf,
  statusIs,
  webProgram,
  type WorkloadBench,
} from './bench';

const TEST_MS = 240_000;

/** To be called where tests are declared. */
export function describeDeployments(bench: WorkloadBench): void {
  const { capabilities } = bench;

  test(
    'no request is lost in a deployment, a rollback and a restart, also of those that take long',
    async () => {
      const application = await bench.service().application(siteOf('one'));
      const first = await deployed(application);
      await onlyRunning(application, 'web', 1);
      const quick = application.traffic('/', 2);
      const slow = application.traffic('/cgi-bin/slow.cgi', 2);
      application.push(siteOf('two'));
      await deployed(application);
      expect((await application.visit()).body).toBe('two');
      const [second] = await onlyRunning(application, 'web', 1);
      expect((await application.get(`/deployments/${first.id}`)).status).toBe('superseded');

      const back = await application.post('/rollback', { deployment_id: first.id });
      expect(await application.ended(back.id, CHANGED_WITHIN_MS)).toMatchObject({
        ...{ status: 'active', trigger: 'rollback', source_deployment_id: first.id },
      });
      expect((await application.visit()).body).toBe('one');
      const [third] = await onlyRunning(application, 'web', 1);

      await application.post('/restart', {});
      await waitFor(
        'another instance',
        async () => !(await instancesOf(application)).some(({ id }) => id === third?.id),
        CHANGED_WITHIN_MS,
      );
      await onlyRunning(application, 'web', 1);
      expect(second?.id).not.toBe(third?.id);

      const [ofQuick, ofSlow] = [await quick.stop(), await slow.stop()];
      expect({ quick: ofQuick.lost, slow: ofSlow.lost }).toEqual({ quick: [], slow: [] });
      expect([...ofQuick.seen].sort()).toEqual(['one', 'two']);
      expect(ofQuick.total).toBeGreaterThan(50);
      expect(ofSlow.total).toBeGreaterThan(5);
    },
    TEST_MS,
  );

  test(
    'a version that does not stay up, or is not healthy, keeps the previous one in service',
    async () => {
      const health_check = { ...GIVEN_UP_SOON.health_check, type: 'http', path: '/index.html' };
      const application = await bench.service().application(siteOf('good'), { health_check });
      await deployed(application);
      const traffic = application.traffic('/', 1);
      application.push({ ...siteOf('bad'), 'web.sh': 'echo no database; exit 3\n' });
      const ended = await application.ended((await application.ask()).id, CHANGED_WITHIN_MS);
      expect(ended).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('code 3') });
      expect(ended.status_reason).toContain('previous version stays in service');
      application.push({
        ...siteOf('sick'),
        'web.sh': webProgram('site/cgi-bin'),
      });
      const sick = await application.ended((await application.ask()).id, CHANGED_WITHIN_MS);
      expect(sick).toMatchObject({
        status: 'failed',
        status_reason: expect.stringContaining('did not become healthy within 8 seconds'),
      });
      const { lost, seen } = await traffic.stop();
      expect({ lost, seen: [...seen] }).toEqual({ lost: [], seen: ['good'] });
      await onlyRunning(application, 'web', 1);
      expect((await application.get()).status).toBe('running');
    },
    TEST_MS,
  );

  test(
    'a release command runs before requests are switched, and one that fails keeps the previous version in service',
    async () => {
      const command = 'echo migrated $(cat version.txt) for $GREETING; cp version.txt released.txt; ';
      const types = (end: string): string => `release: sh -c '${command}${end}'\n`;
      const application = await bench.service().application(siteOf('one', types('exit 0')));
      await bench.service().call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value: 'all' } });
      const { id } = await deployed(application);
      expect(await application.log(id)).toContain('migrated one for all');
      const { body } = await application.visit('/cgi-bin/file.cgi');
      expect(body).toBe(capabilities.releaseCommandWritesFiles ? 'one' : '');
      application.push(siteOf('two', types('exit 4')));
      const failed = await application.ended((await application.ask()).id, CHANGED_WITHIN_MS);
      expect(failed).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('exit code 4') });
      expect((await application.visit()).body).toBe('one');
    },
    TEST_MS,
  );

  test(
    'variables are those of the release: changed ones take effect with a restart, and others with a rollback',
    async () => {
      const service = bench.service();
      const application = await service.application(siteOf('one'));
      const set = (value: string): Promise<unknown> =>
        service.call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value } });
      const value = 'it\'s "quoted" $HOME $(HOME) %s';
      await set(value);
      await deployed(application);
      const before = await environmentOf(application);
      expect([before.get('GREETING'), before.get('SVC_HOSTNAME')]).toEqual([value, application.host]);
      await set('later');
      expect((await environmentOf(application)).get('GREETING')).toBe(value);
      await application.post('/restart', {});
      await waitFor(
        'the new value',
        async () => (await environmentOf(application)).get('GREETING') === 'later',
        CHANGED_WITHIN_MS,
      );
      await statusIs(application, 'running');
    },
    TEST_MS,
  );
}
