// What goes wrong in ways that the host has to bound: each ends in a clear state with a reason, and the host goes on.
import { eventually, leftOvers, startDeployService, type DeployService } from '../support/deploy';
import { nodeApp, webCommand } from '../support/repositories';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '5', BUILD_OUTPUT_MB: '1', BUILD_DISK_MB: '64', BUILD_MEMORY_MB: '128', BUILD_TIMEOUT_SECONDS: '25', APP_PORTS: '28301-28302' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

const building = (command: string) => ({ ...nodeApp('x'), 'package.json': JSON.stringify({ name: 'app', version: '1.0.0', scripts: { build: command, start: 'node server.js' } }) });

test('a build that prints, fills the disk, takes memory, forks or takes its time without end', async () => {
  const commands = ['yes', 'dd if=/dev/zero of=big bs=1M count=4000', 'node -e "const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))"', 'sh -c \'f() { f | f & f; }; f\'', 'sleep 600'];
  const all = await Promise.all(commands.map((command) => service.application(building(command))));
  const ends = await Promise.all(all.map((application) => application.deploy()));
  expect(ends.map(({ status }) => status)).toEqual(Array(5).fill('failed'));
  const [printed, filled, remembered, forked, slept] = ends.map(({ status_reason }) => status_reason as string);
  expect(printed).toContain('printed more than 1 MB');
  expect(filled).toContain('grew beyond 64 MB');
  expect(remembered).toMatch(/more than 128 MB of memory|failed with exit code|ended by/);
  expect(forked).toMatch(/./);
  expect(slept).toContain('25 seconds');
  await eventually('nothing is left', async () => leftOvers(service.runtimeDir).filter((name) => /^(units|releases)/.test(name)).length === 0);
}, 90_000);

test('no port is left: the deployment says so, and what runs runs on', async () => {
  const application = await service.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
  const other = await service.application(nodeApp('two'));
  expect((await other.deploy()).status).toBe('active');
  application.push(nodeApp('three'));
  const failed = await application.deploy();
  expect(failed.status).toBe('failed');
  expect(failed.status_reason).toMatch(/port/i);
  expect((await application.visit()).body).toBe('one');
  await service.clear();
}, 90_000);

test('an app that takes more memory than its size is ended, and says so', async () => {
  const application = await service.application(webCommand('node server.js', { 'server.js': `
    require('http').createServer((q, a) => { if (q.url === '/eat') { const all = []; setInterval(() => all.push(Buffer.alloc(64 << 20, 1)), 20); } a.end('fine'); }).listen(process.env.PORT, '127.0.0.1');` }));
  await service.call('PATCH', `/v2/applications/${application.id}`, { body: { application_type: 'xs-256mb' } });
  expect((await application.deploy()).status).toBe('active');
  await application.visit('/eat');
  const line = await eventually('the reason', async () => (await application.get('/logs?source=system')).data.find(({ message }: { message: string }) => message.includes('more than 256 MB of memory')));
  expect(line).toMatchObject({ level: 'error', process_type: 'web' });
  await eventually('it runs again', async () => (await application.visit().catch(() => null))?.body === 'fine');
}, 60_000);

test('the database is away for a moment in the middle of a deployment', async () => {
  const application = await service.application(building('sleep 3'));
  const asked = await application.ask();
  await eventually('it is built', async () => (await application.get(`/deployments/${asked.id}`)).status === 'building');
  await service.sql(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`);
  await eventually('active', async () => (await application.get(`/deployments/${asked.id}`).catch(() => null))?.status === 'active');
  expect((await application.visit()).body).toBe('x');
}, 60_000);
