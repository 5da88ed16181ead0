// A service that runs programs of tenants who mean harm to each other.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { GIVEN_UP_SOON, QUICK, startDeployService, type DeployService } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';
import { needs } from '../support/runner/programs';

jest.setTimeout(120_000);

let service: DeployService;
beforeAll(async () => void (service = await startDeployService()));
afterAll(() => service.close());

const PORT_OF = 'select port from instances where application_id = $1 and port is not null';

test('who takes the port that an instance was given does not get its requests', async () => {
  const victim = await service.application(
    { Procfile: 'web: node server.js\n', 'server.js': `setTimeout(() => {}, 60000)` },
    GIVEN_UP_SOON,
  );
  const { id } = await victim.ask();
  const { port } = await waitFor(
    'a port',
    async () => (await service.sql<{ port: number }>(PORT_OF, [victim.id]))[0] ?? null,
  );
  let asked = 0;
  const thief = http
    .createServer((_request, response) => void response.end('stolen'))
    .on('connection', () => (asked += 1));
  await new Promise<void>((resolve) => thief.listen(port, '127.0.0.1', resolve));
  try {
    const ended = await victim.ended(id);
    expect(asked).toBeGreaterThan(0);
    expect(ended.status).toBe('failed');
    expect(ended.status_reason).toContain(`did not listen on PORT ${port}`);
    expect((await victim.visit()).body).not.toContain('stolen');
  } finally {
    thief.close();
  }
});

needs('bwrap').test('a build cannot read the keys of the platform, and neither can what it links to', async () => {
  const { dataDir } = service.platform.config;
  const links = Object.fromEntries(
    ['first-key.json', 'secret-key', 'postgres/password'].map((name, i) => [
      `link-${i}`,
      { mode: '120000' as const, content: path.join(dataDir, name) },
    ]),
  );
  const files = {
    ...nodeApp('1'),
    ...links,
    Procfile: 'web: node server.js\nrelease: cat link-0 link-1 link-2; ls / -la; ls -a /proc/1/fd; echo looked\n',
  };
  const app = await service.application(files);
  const { id, status } = await app.deploy();
  expect(status).toBe('active');
  const log = (await app.log(id)).join('\n');
  expect(log).toContain('looked');
  expect(log).not.toMatch(/svc_|"key"/);
  const instance = await app.visit('/env');
  expect(instance.body).not.toMatch(/PLATFORM_|DATABASE_URL|postgres:/);
});

test('a pull request leaves nothing in the cache that the application is built with', async () => {
  const build = (word: string): object => ({
    name: 'cached',
    version: '1.0.0',
    scripts: { build: `cat "$HOME/word"; echo ${word} > "$HOME/word"`, start: 'node server.js' },
  });
  const app = await service.application({
    ...nodeApp('1'),
    'package.json': JSON.stringify(build('of the application')),
  });
  await app.deploy();
  const [{ name }] = (await service.sql<{ name: string }>('select name from applications where id = $1', [app.id])) as [
    { name: string },
  ];
  service.git.commit(name, { 'package.json': JSON.stringify(build('of a stranger')) }, { branch: 'stranger' });
  const made = await service.call('POST', `/v2/applications/${app.id}/previews`, { body: { branch: 'stranger' } });
  expect(made.status).toBe(201);
  await waitFor('the preview', async () => (await app.get(`/previews/${made.body.id}`)).status === 'running', 40_000);
  const { id, status } = await app.deploy();
  expect(status).toBe('active');
  const log = await app.log(id);
  expect(log).toContain('of the application');
  expect(log).not.toContain('of a stranger');
});

test('a health check asks for any path that the API takes', async () => {
  const app = await service.application(nodeApp('1'), {
    health_check: { ...QUICK.health_check, type: 'http', path: '/\u2603\u0001?a=\u00e9' },
  });
  expect((await app.deploy()).status).toBe('active');
});

test('an application goes although its cache cannot be written, nor its paths be said', async () => {
  const app = await service.application(nodeApp('1'));
  await app.deploy();
  const cache = path.join(service.runtimeDir, 'caches', app.id, 'application');
  const locked = path.join(cache, 'locked');
  mkdirSync(locked, { recursive: true });
  writeFileSync(path.join(locked, 'name\nof two lines'), '');
  chmodSync(locked, 0o500);
  const long = 'd'.repeat(200);
  spawnSync('sh', ['-c', `i=0; while [ $i -lt 30 ]; do mkdir ${long} && cd ${long} || exit 1; i=$((i + 1)); done`], {
    cwd: cache,
  });
  expect((await service.call('DELETE', `/v2/applications/${app.id}`)).status).toBeLessThan(300);
  await waitFor(
    'the end of the application',
    async () => (await service.sql('select 1 from applications where id = $1', [app.id])).length === 0,
    30_000,
  );
});
