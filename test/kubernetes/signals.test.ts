/** @tier heavy @quarter 2 @covers drivers/release_image jobs/applications/workload drivers/workload/kubernetes/task */
// How programs on a cluster end, on a base as users have it: Debian, whose shell is dash. The cluster is real.
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import { busyboxLayer, pushImage, siteLayer } from '../support/builds/images';
import {
  configuredApplication,
  GIVEN_UP_SOON,
  type DeployService,
  type TestApplication,
} from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { startRegistryClient } from '../support/registries/registry_client';
import { glibcLayer } from '../support/registries/release_images';
import { runEnded, runLog, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

let service: DeployService;
let application: TestApplication;

const SERVER = `
const server = require('node:http').createServer((_request, response) => response.end('ok'));
process.on('SIGTERM', () => {
  console.log('told to end');
  server.close();
  server.closeAllConnections();
  setTimeout(() => process.exit(7), 500);
});
if (process.env.PORT) server.listen(process.env.PORT, '0.0.0.0'); else setInterval(() => {}, 1000);
console.log('program started');
`;
/** The default grace time is 30 seconds, behind 3 in which the ingress turns away. */
const ENDED_WITHIN_MS = 20_000;

describeOnClusterOfMachine('programs behind the shell of Debian', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const namespaceOf = (): string =>
    `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;
  beforeAll(async () => {
    service = await startOnCluster(cluster(), { base: await glibcLayer(), settings: { PREFERRED_NODE: 'host' } });
    application = await service.application(
      {
        Procfile: 'web: cd . && node server.js\nplain: node plain.js\nscript: ./start.sh\n',
        'package.json': '{"name":"shop","version":"1.0.0"}',
        'server.js': SERVER,
        'plain.js': "console.log('program started'); setInterval(() => {}, 1000);",
        'start.sh': { mode: '100755', content: '#!/bin/sh\nnode server.js\nexit $?\n' },
      },
      { run: { shutdown_grace_seconds: 30 } },
    );
    const { status, status_reason } = await application.deploy();
    expect([status, status_reason]).toEqual(['active', null]);
  }, 180_000);
  afterAll(() => service?.close(), 120_000);

  test('get SIGTERM, and end long before they would be killed', async () => {
    const pods = await run('get', 'pods', '-A', '-l', `platform-api/application=${application.id}`, '-o', 'name');
    expect(pods.trim().split('\n')).toHaveLength(1);
    const selector = ['-l', `platform-api/application=${application.id}`];
    const namespace = namespaceOf();
    const begun = Date.now();
    await run('-n', namespace, 'delete', pods.trim().split('\n')[0]!, '--wait=true', '--timeout=60s');
    expect(Date.now() - begun).toBeLessThan(ENDED_WITHIN_MS);
    await waitFor('the line of the handler', async () => {
      const { data } = (await application.get('/logs?limit=200')) as { data: { message: string }[] };
      return data.some(({ message }) => message === 'told to end');
    });
    await waitFor(
      'another instance',
      async () => {
        const ready = ['-o', 'jsonpath={.items[*].status.containerStatuses[0].ready}'];
        return (await run('-n', namespace, 'get', 'pods', ...selector, ...ready)) === 'true';
      },
      60_000,
    );
  }, 180_000);

  test.each([
    ['cd . && node server.js', 'told to end', 7],
    ['./start.sh', 'told to end', 7],
    ['node plain.js; exit 5', 'program started', 5],
  ])(
    'as a run that is canceled: `%s`',
    async (command, printed, code) => {
      const { id } = await startRun(application, command);
      await waitFor('its program', async () => (await runLog(application, id)).includes('program started'), 60_000);
      const begun = Date.now();
      await application.post(`/runs/${id}/cancel`);
      const ended = await runEnded(application, id, 60_000);
      expect(Date.now() - begun).toBeLessThan(ENDED_WITHIN_MS);
      expect([ended.status, ended.exit_code]).toEqual(['canceled', code]);
      expect(await runLog(application, id)).toContain(printed);
    },
    120_000,
  );

  test.each([
    [
      'a command of a shell',
      ['/bin/sh', '-c', 'cd /www && busybox httpd -f -p "$PORT" -h /www; echo ended'],
      ['ended'],
    ],
    ['a program without a handler', ['/bin/busybox', 'httpd', '-f', '-p', '8080', '-h', '/www'], []],
  ])(
    'in an image: %s',
    async (name, Cmd, printed) => {
      const port = service.platform.config.registryPort!;
      const client = startRegistryClient({ port, username: 'owner', password: service.key });
      const tag = String(Cmd.length);
      const layers = [await busyboxLayer(), await siteLayer({ 'index.html': 'ok' })];
      await pushImage(client, 'bases/app', tag, {
        layers,
        config: { Cmd, User: '101:102', ExposedPorts: { '8080/tcp': {} } },
      });
      const source = { type: 'image', image: `localhost:${port}/bases/app:${tag}` };
      const made = await service.call('POST', '/v2/applications', { body: { name: `image-${tag}`, source } });
      const image = await configuredApplication(service, made.body, { run: { shutdown_grace_seconds: 30 } });
      const { status, status_reason } = await image.deploy();
      expect([status, status_reason, name]).toEqual(['active', null, name]);
      const begun = Date.now();
      await run('-n', namespaceOf(), 'delete', 'pod', '-l', `platform-api/application=${image.id}`, '--wait=true');
      expect(Date.now() - begun).toBeLessThan(ENDED_WITHIN_MS);
      await waitFor('its last line', async () => {
        const { data } = (await image.get('/logs?limit=200')) as { data: { message: string }[] };
        return printed.every((line) => data.some(({ message }) => message === line));
      });
    },
    180_000,
  );

  test('with the line ends of Windows do not start, and the reason says so', async () => {
    const start = { mode: '100755', content: '#!/bin/bash\r\nexit 0\r\n' } as const;
    const broken = await service.application({ Procfile: 'web: ./start.sh\n', 'start.sh': start }, GIVEN_UP_SOON);
    const { status, status_reason } = await broken.deploy();
    expect([status, status_reason]).toEqual(['failed', expect.stringContaining('`./start.sh` has the line ends of')]);
  }, 180_000);
});
