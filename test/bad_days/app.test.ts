// Apps that leak, and hosts that have no room: no port, no connection, no disk.
import http from 'node:http';
import { nothingOrphaned } from '../support/bad_days';
import { eventually, startDeployService, type DeployService, type TestApplication } from '../support/deploy';
import { nodeApp, webCommand } from '../support/repositories';

const CONNECTIONS = Number(process.env.CONNECTIONS ?? 2_000);

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ APP_PORTS: '19870-19872' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

const running = (application: TestApplication, count: number): Promise<unknown> => eventually(`${count} instances of ${application.name}`, async () => {
  const { data } = await application.get('/instances');
  return data.length === count && data.every(({ status }: { status: string }) => status === 'running');
});

test('no port is left: a new version is refused with the reason, the old one goes on; with a port again all is well', async () => {
  const [one, two] = [await service.application(nodeApp('one')), await service.application(nodeApp('two'))];
  for (const application of [one, two]) expect((await application.deploy()).status).toBe('active');
  const { id } = (await two.get('/processes')).data[0];
  await two.post(`/processes/${id}/scale`, { instances: 2 });
  await running(two, 2);
  const failed = await one.deploy();
  expect([failed.status, failed.status_reason]).toEqual(['failed', expect.stringMatching(/All ports from 19870 to 19872 are taken\. Enlarge APP_PORTS, or stop applications\.$/)]);
  expect((await one.visit()).body).toBe('one');
  await two.post(`/processes/${id}/scale`, { instances: 1 });
  await running(two, 1);
  expect((await one.deploy()).status).toBe('active');
  await nothingOrphaned(service);
  await service.clear();
  await nothingOrphaned(service);
}, 60_000);

test('an app that leaks memory is ended at the size of its process type and started again; its log says why', async () => {
  const application = await service.application(webCommand('node server.js', {
    'server.js': `const all = []; require('http').createServer((q, a) => { if (q.url === '/leak') setInterval(() => all.push(Buffer.alloc(8e6, 1)), 5); a.end('well'); }).listen(process.env.PORT, '127.0.0.1')`,
  }));
  expect((await application.deploy()).status).toBe('active');
  await application.visit('/leak');
  await eventually('the restart', async () => (await application.get('/instances')).data[0]?.restart_count === 1);
  await eventually('an answer', async () => (await application.visit()).body === 'well');
  const lines = (await application.get('/logs?source=system')).data.map(({ message }: { message: string }) => message);
  expect(lines.join('\n')).toMatch(/web: The app was ended because it used more than \d+ MB of memory\. Choose a larger size, or let it use less\./);
  await nothingOrphaned(service);
}, 60_000);

test(`${CONNECTIONS} connections to one application at once are all answered, and the API too`, async () => {
  const application = await service.application(nodeApp('busy'));
  expect((await application.deploy()).status).toBe('active');
  const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
  const began = performance.now();
  const answers = Promise.all(Array.from({ length: CONNECTIONS }, () => answerTo(application, agent)));
  const api = (await application.get()).status;
  const counts = new Map<string, number>();
  for (const answer of await answers) counts.set(answer, (counts.get(answer) ?? 0) + 1);
  expect(Object.fromEntries(counts)).toEqual({ '200 slow busy': CONNECTIONS });
  expect(api).toBe('running');
  expect(performance.now() - began).toBeLessThan(30_000);
  agent.destroy();
  expect((await application.get('/instances')).data[0]).toMatchObject({ status: 'running', restart_count: 0 });
}, 90_000);

function answerTo(application: TestApplication, agent: http.Agent): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get({ host: '127.0.0.1', port: service.platform.config.ingressPort, path: '/slow', headers: { Host: application.host }, agent }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text)).on('end', () => resolve(`${response.statusCode} ${body.slice(0, 60)}`));
    });
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}
