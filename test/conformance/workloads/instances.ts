// Instances: as many as are desired, of the process types that the version has, each with its output in the log.
import {
  CHANGED_WITHIN_MS,
  deployed,
  instancesOf,
  onlyRunning,
  scale,
  siteOf,
  statusIs,
  visitWith,
  type WorkloadBench,
} from './bench';
import { waitFor } from '../../support/wait_for';

const TEST_MS = 240_000;
const VISITS = 12;

/** To be called where tests are declared. */
export function describeInstances(bench: WorkloadBench): void {
  test(
    'it scales without losing a request, stops, starts, and a deployment starts it too',
    async () => {
      const application = await bench.service().application(siteOf('one'));
      await deployed(application);
      const traffic = application.traffic('/', 2);
      await scale(application, 'web', 3);
      await onlyRunning(application, 'web', 3);
      await scale(application, 'web', 1);
      await onlyRunning(application, 'web', 1);
      expect((await traffic.stop()).lost).toEqual([]);
      await application.post('/stop');
      await statusIs(application, 'stopped');
      expect(await instancesOf(application)).toEqual([]);
      expect((await application.visit()).status).toBe(503);
      await application.post('/start');
      await statusIs(application, 'running');
      expect((await application.visit()).body).toBe('one');
      await application.post('/stop');
      await statusIs(application, 'stopped');
      application.push(siteOf('two'));
      await deployed(application);
      await statusIs(application, 'running');
      expect((await application.visit()).body).toBe('two');
    },
    TEST_MS,
  );

  test(
    'process types are those of the version: one that should run is missed, and new ones can be scaled',
    async () => {
      const application = await bench.service().application(siteOf('one', 'worker: sleep 1000\n'));
      await deployed(application);
      await scale(application, 'worker', 2);
      await onlyRunning(application, 'worker', 2);
      application.push(siteOf('two', 'clock: sleep 1000\n'));
      const refused = await application.ended((await application.ask()).id, CHANGED_WITHIN_MS);
      expect(refused).toMatchObject({
        status: 'failed',
        status_reason: expect.stringContaining('worker has no command, but should run 2 instances'),
      });
      await onlyRunning(application, 'worker', 2);
      await scale(application, 'worker', 0);
      await deployed(application);
      await onlyRunning(application, 'worker', 0);
      await scale(application, 'clock', 1);
      await onlyRunning(application, 'clock', 1);
      await onlyRunning(application, 'web', 1);
    },
    TEST_MS,
  );

  test(
    'sticky sessions keep a visitor with an instance, and lead on when it has gone',
    async () => {
      const application = await bench.service().application(siteOf('one'), { http: { sticky_sessions: true } });
      await deployed(application);
      await scale(application, 'web', 2);
      const instances = await onlyRunning(application, 'web', 2);
      const { host } = application;
      const visit = (cookie?: string) =>
        visitWith(bench, { host, path: '/cgi-bin/instance.cgi', ...(cookie !== undefined && { cookie }) });
      const strangers = await waitFor('both instances', async () => {
        const found = await Promise.all(Array.from({ length: VISITS }, () => visit()));
        return new Set(found.map(({ body }) => body)).size === 2 && found;
      });
      if (bench.capabilities.namesInstances)
        expect([...new Set(strangers.map(({ body }) => body))].sort()).toEqual(instances.map(({ id }) => id).sort());
      const [known] = strangers as [(typeof strangers)[0]];
      expect(known.cookie).toBeDefined();
      for (let count = 0; count < VISITS; count += 1) expect((await visit(known.cookie)).body).toBe(known.body);
      await application.post('/restart', {});
      await waitFor('another instance', async () => (await visit(known.cookie)).body !== known.body, CHANGED_WITHIN_MS);
      expect((await visit(known.cookie)).cookie).not.toBe(known.cookie);
    },
    TEST_MS,
  );

  test(
    'each line that a program prints is in the log once, also of one that ends and is started again',
    async () => {
      const application = await bench.service().application({
        ...siteOf('one', 'worker: sh count.sh\nclock: sh tick.sh\n'),
        'count.sh': 'i=0; while test $i -lt 500; do i=$((i+1)); echo line $i; done; exec sleep 1000\n',
        'tick.sh': 'echo tick of $SVC_INSTANCE_ID; exec sleep 2\n',
      });
      await deployed(application);
      await scale(application, 'worker', 1);
      await scale(application, 'clock', 1);
      const messages = async (type: string): Promise<string[]> =>
        (await application.get(`/logs?process_type=${type}&limit=1000`)).data
          .filter((line: { source: string }) => line.source === 'app')
          .map((line: { message: string }) => line.message);
      const lines = await waitFor(
        'all lines',
        async () => {
          const found = await messages('worker');
          return found.length >= 500 && found;
        },
        CHANGED_WITHIN_MS,
      );
      expect(lines.sort()).toEqual(Array.from({ length: 500 }, (_, index) => `line ${index + 1}`).sort());
      const ticks = await waitFor(
        'three ticks',
        async () => {
          const found = await messages('clock');
          return found.length >= 3 && found;
        },
        CHANGED_WITHIN_MS,
      );
      expect(new Set(ticks).size).toBe(1);
      const clock = (await instancesOf(application)).find((one) => one.process_type === 'clock');
      expect(clock?.restart_count).toBeGreaterThan(0);
    },
    TEST_MS,
  );
}
