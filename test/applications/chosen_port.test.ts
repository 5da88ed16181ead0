/** @tier heavy @quarter 1 @covers jobs/applications/instance drivers/network */
// Programs that know nothing of PORT: their port is found, or `http.port` says it, where instances have networks of
// their own.
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/** What the starters of frameworks are: their port stands in the program. */
const program = (text: string): string =>
  `require('node:http').createServer((_, response) => response.end('${text} ' + process.env.PORT)).listen(3000)`;
const files = (text: string): Record<string, string> => ({ 'server.js': program(text) });
/** Long enough for a program to listen on a busy machine. */
const GIVEN_UP = { health_check: { interval_seconds: 5, timeout_seconds: 4, grace_period_seconds: 15 } };
const WITHIN_MS = 240_000;

const listen = (...addresses: string[]): Record<string, string> => ({
  'server.js': addresses
    .map((one) => `require('node:http').createServer((_, response) => response.end()).listen(${one});`)
    .join('\n'),
});
/** Opens one port, but is no web server. */
const MUTE = { 'server.js': `require('node:net').createServer((socket) => socket.end('?')).listen(3003)` };

const { describe: isolated } = needs('bwrap', 'ip', 'nft');

(process.getuid?.() === 0 ? isolated : describe.skip)('as root, on networks of projects', () => {
  let service: DeployService;
  beforeAll(async () => {
    service = await startDeployService({ NETWORK: 'isolated', NETWORK_BLOCK: '10.249.0.0/24' });
  });
  afterAll(() => service?.close());

  test(
    'the only port of a program is led to, which the log says, and the next release and further instances have it',
    async () => {
      const application = await service.application(files('one'));
      const first = await deploy(application);
      expect([first.status, first.status_reason]).toEqual(['active', null]);
      expect(await application.visit()).toEqual({ status: 200, body: 'one 3000' });
      const log = (await application.log(first.id)).join('\n');
      expect(log).toMatch(/The app listens on port 3000 and not on PORT \d+, so .* Set `http\.port` to 3000/);
      const [web] = (await application.get('/processes')).data;
      await application.post(`/processes/${web.id}/scale`, { instances: 2 });
      await runningInstances(application, web.id, 2);
      application.push(files('two'));
      const second = await deploy(application);
      expect([second.status, second.status_reason]).toEqual(['active', null]);
      await waitFor('the new release', async () => (await application.visit()).body === 'two 3000', 60_000);
      expect((await application.log(second.id)).join('\n')).not.toMatch(/listens on port/);
      await requireNoExits(application);
    },
    WITHIN_MS,
  );

  test(
    'the first version of several instances finds the port by one of them, which is no conflict for the others',
    async () => {
      const application = await service.application(files('one'));
      const [web] = (await application.get('/processes')).data;
      await application.post(`/processes/${web.id}/scale`, { instances: 3 });
      const first = await deploy(application);
      expect([first.status, first.status_reason]).toEqual(['active', null]);
      await runningInstances(application, web.id, 3);
      await requireNoExits(application);
    },
    WITHIN_MS,
  );

  test(
    'a program that listens on PORT after all, or on another port than before, is found there',
    async () => {
      const application = await service.application(files('one'));
      expect((await deploy(application)).status).toBe('active');
      application.push({ 'server.js': program('two').replace('3000', 'process.env.PORT') });
      expect((await deploy(application)).status).toBe('active');
      await waitFor('the second', async () => (await application.visit()).body === 'two 3000', 60_000);
      application.push({ 'server.js': program('three').replace('3000', '4000') });
      expect((await deploy(application)).status).toBe('active');
      await waitFor('the third', async () => (await application.visit()).body === 'three 4000', 60_000);
    },
    WITHIN_MS,
  );

  test(
    'ports that are not led to, and the reasons, which name them',
    async () => {
      const cases: [Record<string, string>, RegExp][] = [
        [listen(`3000, '127.0.0.1'`), /it listens on 3000 of 127\.0\.0\.1 alone\. Use .* to 3000\./],
        [listen(`3005, '::1'`), /it listens on 3005 of ::1 alone\. Use the PORT variable, and listen on 0\.0\.0\.0\./],
        [listen(`process.env.PORT, '::1'`), /it listens on \d+ of ::1 alone\. Use the PORT/],
        [listen('3001', '3002'), /it listens on 3001, 3002\. Use .*, or set `http\.port` to the one that s/],
        [MUTE, /it listens on 3003\. Use the PORT variable, or set `http\.port` to 3003\./],
        // Another one at each start.
        [listen('0'), /did not listen on PORT \d+ within 15 seconds; it listens on \d+\./],
      ];
      const applications = await Promise.all(cases.map(([source]) => service.application(source, GIVEN_UP)));
      const ended = await Promise.all(applications.map(async (one) => one.ended((await one.ask()).id, WITHIN_MS)));
      expect(ended.map(({ status, status_reason }) => [status, status_reason])).toEqual(
        cases.map(([, reason]) => ['failed', expect.stringMatching(reason)]),
      );
    },
    WITHIN_MS,
  );

  test(
    '`http.port` leads to a port of the loopback interface too',
    async () => {
      const application = await service.application(listen(`3000, '127.0.0.1'`));
      const settings = `/v2/applications/${application.id}/settings`;
      const { status, body } = await service.call('PATCH', settings, { body: { http: { port: 3000 } } });
      expect([status, body.http.port]).toEqual([200, 3000]);
      expect((await deploy(application)).status).toBe('active');
      expect((await application.visit()).status).toBe(200);
    },
    WITHIN_MS,
  );
});

describe('on the network of the host', () => {
  let service: DeployService;
  beforeAll(async () => {
    service = await startDeployService({ NETWORK: 'shared' });
  });
  afterAll(() => service?.close());

  test(
    'the reason of a failure names the port of the program',
    async () => {
      const application = await service.application(files('one'), GIVEN_UP);
      const failed = await deploy(application);
      expect([failed.status, failed.status_reason]).toEqual([
        'failed',
        expect.stringMatching(/did not listen on PORT \d+ .*; it listens on 3000\. Use the PORT variable\.$/),
      ]);
    },
    WITHIN_MS,
  );

  test('another port than the one that is read is refused', async () => {
    const application = await service.application(files('one'));
    const settings = `/v2/applications/${application.id}/settings`;
    const { body: present } = await service.call('GET', settings);
    const patch = (port: number) => service.call('PATCH', settings, { body: { http: { ...present.http, port } } });
    expect(await patch(3000)).toMatchObject({
      status: 422,
      body: { code: 'validation_failed', errors: [{ field: 'http.port', code: 'depends_on' }] },
    });
    expect((await patch(present.http.port)).status).toBe(200);
  });
});

async function deploy(application: TestApplication): Promise<{ id: string; status: string; status_reason: string }> {
  return application.ended((await application.ask()).id, WITHIN_MS);
}

async function runningInstances(application: TestApplication, processId: string, count: number): Promise<void> {
  await waitFor(
    `${count} instances`,
    async () =>
      (await application.get('/processes')).data.find(({ id }: { id: string }) => id === processId)
        .running_instances === count,
    60_000,
  );
}

/** The move to another port is none, and an instance that begins with its port needs no second start. */
async function requireNoExits(application: TestApplication): Promise<void> {
  const instances = (await application.get('/instances')).data;
  expect(instances.map((one: { restart_count: number }) => one.restart_count)).toEqual(instances.map(() => 0));
}
