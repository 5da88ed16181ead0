/** @tier heavy @quarter 3 @covers engines/ingress/ingress jobs/applications/instance */
// Apps that leak, and hosts that have no room: no port, no connection, no disk.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { INGRESS_LIMITS } from '../../engines/ingress/limits';
import { nothingOrphaned } from '../support/processes/bad_days';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp, webCommand } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

const CONNECTIONS = Number(process.env.CONNECTIONS ?? 2_000);

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ APP_PORTS: '19870-19872' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

const running = (application: TestApplication, count: number): Promise<unknown> =>
  waitFor(`${count} instances of ${application.name}`, async () => {
    const { data } = await application.get('/instances');
    return data.length === count && data.every(({ status }: { status: string }) => status === 'running');
  });

test('without a free port a new version is refused with the reason, and the old one goes on', async () => {
  const [one, two] = [await service.application(nodeApp('one')), await service.application(nodeApp('two'))];
  for (const application of [one, two]) expect((await application.deploy()).status).toBe('active');
  const { id } = (await two.get('/processes')).data[0];
  await two.post(`/processes/${id}/scale`, { instances: 2 });
  await running(two, 2);
  const failed = await one.deploy();
  expect([failed.status, failed.status_reason]).toEqual([
    'failed',
    expect.stringMatching(/All ports from 19870 to 19872 are taken\. Enlarge APP_PORTS, or stop applications\.$/),
  ]);
  expect((await one.visit()).body).toBe('one');
  await two.post(`/processes/${id}/scale`, { instances: 1 });
  await running(two, 1);
  expect((await one.deploy()).status).toBe('active');
  await nothingOrphaned(service);
  await service.clear();
  await nothingOrphaned(service);
}, 60_000);

test('an app that leaks memory is ended at the size of its process type and restarted; its log says why', async () => {
  const application = await service.application(
    webCommand('node server.js', {
      'server.js':
        "const all = []; require('http').createServer((q, a) => { if (q.url === '/leak') setInterval(() => " +
        "all.push(Buffer.alloc(8e6, 1)), 5); a.end('well'); }).listen(process.env.PORT, '127.0.0.1')",
    }),
  );
  expect((await application.deploy()).status).toBe('active');
  await application.visit('/leak');
  await waitFor('the restart', async () => (await application.get('/instances')).data[0]?.restart_count === 1);
  await waitFor('an answer', async () => (await application.visit()).body === 'well');
  const lines = (await application.get('/logs?source=system')).data.map(({ message }: { message: string }) => message);
  expect(lines.join('\n')).toMatch(
    new RegExp(
      'web: The app was ended because it used more than \\d+ MB of memory\\. ' +
        'Choose a larger size, or reduce the memory that it uses\\.',
    ),
  );
  await nothingOrphaned(service);
}, 60_000);

test(`${CONNECTIONS} connections to one application: each is answered or refused, others notice nothing`, async () => {
  const [application, neighbour] = [
    await service.application(nodeApp('busy')),
    await service.application(nodeApp('quiet')),
  ];
  for (const one of [application, neighbour]) expect((await one.deploy()).status).toBe('active');
  const began = performance.now();
  const client = promisify(execFile)(process.execPath, [
    '-e',
    CLIENT,
    String(service.platform.config.ingressPort),
    application.host,
    String(CONNECTIONS),
  ]);
  const [api, other] = await Promise.all([application.get(), neighbour.visit()]);
  const counts = JSON.parse((await client).stdout) as { answered: number; busy: number; other: string[] };
  // One address may have half of what an application may have open, at a time.
  expect(counts).toEqual({ answered: expect.any(Number), busy: CONNECTIONS - counts.answered, other: [] });
  expect(counts.answered).toBeGreaterThanOrEqual(Math.min(CONNECTIONS, INGRESS_LIMITS.applicationRequests / 2));
  expect([api.status, other.body]).toEqual(['running', 'quiet']);
  expect(performance.now() - began).toBeLessThan(30_000);
  expect((await application.visit()).body).toBe('busy');
  expect((await application.get('/instances')).data[0]).toMatchObject({ status: 'running', restart_count: 0 });
}, 90_000);

// A process of its own: it has as many open files as the ingress. All connections are open before the first request
// goes out.
const CLIENT = `
const net = require('net');
const [port, host, count] = process.argv.slice(1);
const counts = { answered: 0, busy: 0, other: [] };
let connected = 0;
let ended = 0;
const sockets = Array.from({ length: Number(count) }, () => {
  const socket = net.connect({ port: Number(port), host: '127.0.0.1' });
  let text = '';
  const request = 'GET /slow HTTP/1.1\\r\\nHost: ' + host + '\\r\\nConnection: close\\r\\n\\r\\n';
  const go = () => (connected += 1) === sockets.length && sockets.forEach((one) => one.write(request));
  const end = (error) => {
    if (text.startsWith('HTTP/1.1 200') && text.includes('slow busy')) counts.answered += 1;
    else if (/^HTTP\\/1\\.1 (503|429) /.test(text) && text.includes('too many open requests')) counts.busy += 1;
    else counts.other.push((error ? error.code : '') + text.slice(0, 60));
    if ((ended += 1) === sockets.length) console.log(JSON.stringify({ ...counts, other: counts.other.slice(0, 5) }));
  };
  socket.setEncoding('utf8').on('connect', go).on('data', (part) => (text += part)).once('end', end).once('error', end);
  return socket;
});
`;
