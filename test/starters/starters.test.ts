/** @tier heavy @quarter 1 @covers drivers/builder drivers/toolchain */
// Applications in the style of public starters, deployed untouched through the API of a started service. Their packages
// come from the registries, so this is a run of its own: npm run test:starters, or one of them: -- -t nextjs
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { visitHost, type Visit } from '../support/deployments/deploy';
import { makeRepository, startService, type StartedService } from '../support/processes/started_service';

const folder = mkdtempSync(path.join(os.tmpdir(), 'starters-'));
const DEPLOY_MS = 8 * 60_000;
const seen: string[] = [];
let service: StartedService;

interface Deployed {
  id: string;
  visit(target?: string, method?: string): Promise<Visit>;
}

beforeAll(async () => {
  service = await startService({ ALLOW_LOCAL_GIT: '1', PREFERRED_NODE: 'long_term', PREFERRED_PYTHON: 'newest' });
}, 180_000);

afterAll(async () => {
  await service?.close();
  rmSync(folder, { recursive: true, force: true });
  process.stdout.write(`\n${seen.join('\n')}\n\n`);
}, 120_000);

/** Deploys test/starters/<name>. `engine` is a database that is attached before. */
async function deploy(name: string, engine?: 'postgresql' | 'redis'): Promise<Deployed> {
  const repository_url = makeRepository(path.join(__dirname, name), path.join(folder, name));
  const application = await service.call('POST', '/v2/applications', { name, source: { type: 'git', repository_url } });
  if (engine !== undefined) await attach(application.id, name, engine);
  await deployAgain(application.id, name);
  return {
    id: application.id,
    visit: (place = '/', method = 'GET') => visitHost(service.ingressPort, application.default_hostname, place, method),
  };
}

async function deployAgain(id: string, name: string): Promise<void> {
  const started = performance.now();
  const made = await service.call('POST', `/v2/applications/${id}/deployments`, {});
  const target = `/v2/applications/${id}/deployments/${made.id}`;
  const deployment = await service.waitFor(target, ['active', 'failed', 'canceled'], DEPLOY_MS);
  const lines = (await service.call('GET', `${target}/logs?order=asc&limit=100`)).data.map(
    (line: { message: string }) => line.message,
  );
  if (deployment.status !== 'active') throw new Error(`${deployment.status_reason}\n${lines.join('\n')}`);
  // What says nothing to the person who deploys.
  expect(lines.filter((line: string) => /store-dir|^Terminated|^Profile\b|\.platform\/profile/.test(line))).toEqual([]);
  const summary = lines
    .find((line: string) => /^-----> (Procfile|Node|Python|Static|Rust|Java|PHP|Ruby)/.test(line))
    ?.slice(7);
  seen.push(`| ${name} | ${summary} | ${Math.round((performance.now() - started) / 1000)} s |`);
}

async function attach(application_id: string, name: string, engine: string): Promise<void> {
  const database = await service.call('POST', '/v2/databases', { name, engine });
  await service.waitFor(`/v2/databases/${database.id}`, ['available']);
  await service.call('POST', `/v2/databases/${database.id}/attachments`, { application_id });
}

async function remove({ id }: Deployed): Promise<void> {
  await service.call('DELETE', `/v2/applications/${id}`);
}

const starter = (name: string, work: () => Promise<void>): void => test(name, work, DEPLOY_MS + 120_000);

starter('express-yarn-classic', async () => {
  const deployed = await deploy('express-yarn-classic');
  expect((await deployed.visit()).body).toBe('<h1>Express on yarn classic</h1>\n');
  expect(JSON.parse((await deployed.visit('/env')).body)).toEqual({
    node: expect.stringMatching(/^v24\./),
    env: 'production',
  });
  await remove(deployed);
});

starter('express-yarn-berry', async () => {
  const deployed = await deploy('express-yarn-berry');
  expect((await deployed.visit()).body).toMatch(/^Express on Yarn with Plug'n'Play, Node\.js v22\./);
  await remove(deployed);
});

starter('nextjs', async () => {
  const deployed = await deploy('nextjs');
  expect((await deployed.visit()).body).toMatch(/<h1>Next\.js, rendered at/);
  expect(JSON.parse((await deployed.visit('/api/health')).body)).toEqual({ ok: true, env: 'production' });
  await remove(deployed);
});

starter('nestjs-typeorm', async () => {
  const deployed = await deploy('nestjs-typeorm', 'postgresql');
  expect((await deployed.visit('/', 'POST')).status).toBe(201);
  expect(JSON.parse((await deployed.visit()).body)).toEqual([{ id: 1, name: 'Tom' }]);
  await remove(deployed);
});

starter('fastify-pnpm', async () => {
  const deployed = await deploy('fastify-pnpm');
  expect(JSON.parse((await deployed.visit()).body)).toEqual({
    hello: 'fastify',
    node: expect.stringMatching(/^v22\./),
  });
  await remove(deployed);
});

starter('vite-react', async () => {
  const deployed = await deploy('vite-react');
  const [, script] = /src="(\/assets\/[^"]+\.js)"/.exec((await deployed.visit()).body) ?? [];
  expect((await deployed.visit(script)).body).toContain('Built by Vite');
  await remove(deployed);
});

starter('monorepo', async () => {
  const deployed = await deploy('monorepo');
  expect((await deployed.visit()).body).toBe('Hello from the package greeting, workspace');
  await remove(deployed);
});

starter('bullmq-worker', async () => {
  const deployed = await deploy('bullmq-worker', 'redis');
  const processes = await service.call('GET', `/v2/applications/${deployed.id}/processes?type=worker`);
  await service.call('POST', `/v2/applications/${deployed.id}/processes/${processes.data[0].id}/scale`, {
    instances: 1,
  });
  expect((await deployed.visit('/sum?of=1,2,39')).body).toBe('42');
  await remove(deployed);
});

starter('knex-migrations', async () => {
  const deployed = await deploy('knex-migrations', 'postgresql');
  expect((await deployed.visit('/', 'POST')).status).toBe(200);
  expect(JSON.parse((await deployed.visit()).body)).toEqual({
    node: expect.stringMatching(/^v18\./),
    notes: [{ id: 1, body: 'written by knex' }],
  });
  await remove(deployed);
});

starter('hono-bun', async () => {
  const deployed = await deploy('hono-bun');
  expect((await deployed.visit()).body).toBe('Hono on Bun 1.2.21');
  await remove(deployed);
});

/** What builds see: pip without the configuration of this user. */
const pip = ['-m', 'pip', 'download', '--isolated', '--no-deps', '--retries=0', '-q', '-d', folder, 'Flask==3.1.0'];
const hasPackages = spawnSync('python3', pip, { timeout: 30_000 }).status === 0;
(hasPackages ? starter : test.skip)('flask-gunicorn (needs the Python package index)', async () => {
  const deployed = await deploy('flask-gunicorn');
  expect((await deployed.visit()).body).toBe('Flask behind gunicorn');
  await remove(deployed);
});

const engines = spawnSync('curl', ['-sS', '--max-time', '10', 'https://binaries.prisma.sh/']).status === 0;
(engines ? starter : test.skip)('prisma (needs the host of its engines, binaries.prisma.sh)', async () => {
  const deployed = await deploy('prisma', 'postgresql');
  expect(JSON.parse((await deployed.visit('/', 'POST')).body)).toMatchObject([{ title: 'written by Prisma' }]);
  await remove(deployed);
});

(hasPackages ? starter : test.skip)('django-static (needs the Python package index)', async () => {
  const deployed = await deploy('django-static');
  expect((await deployed.visit()).body).toContain('href="/static/page.css"');
  // The settings name STATIC_ROOT from now on: names have digests, which only collectstatic makes.
  await service.call('PUT', `/v2/applications/${deployed.id}/env/PRODUCTION`, { value: '1' });
  await deployAgain(deployed.id, 'django-static');
  const [, style = ''] = /href="(\/static\/page\.[0-9a-f]{12}\.css)"/.exec((await deployed.visit()).body) ?? [];
  expect(await deployed.visit(style)).toMatchObject({ status: 200, body: 'h1 { color: green }\n' });
  await remove(deployed);
});

/** Languages of the host are tried where it has all of their programs. */
const needs = (names: string[], name: string, work: () => Promise<void>): void => {
  const missing = names.filter((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);
  (missing.length === 0 ? starter : test.skip)(missing.length ? `${name} (needs ${missing.join(', ')})` : name, work);
};

needs(['mvn', 'javac'], 'spring-boot', async () => {
  const deployed = await deploy('spring-boot');
  expect((await deployed.visit()).body).toMatch(/^Spring Boot on Java \d+$/);
  await remove(deployed);
});

needs(['/usr/bin/cargo', 'cc'], 'axum', async () => {
  const deployed = await deploy('axum');
  expect((await deployed.visit()).body).toBe('Axum on Rust');
  await remove(deployed);
});

needs(['php', 'composer', '/usr/sbin/nginx'], 'php-composer', async () => {
  const deployed = await deploy('php-composer');
  expect(JSON.parse((await deployed.visit('/a/b?c=1')).body)).toEqual({
    ...{ text: 'Hello from PHP', path: '/a/b?c=1', https: null, address: '127.0.0.1' },
    ...{ name: 'php-composer', proxy: null, body: '' },
  });
  expect(await deployed.visit('/page.css')).toMatchObject({ status: 200, body: 'h1 { color: green }\n' });
  expect((await deployed.visit('/.env')).status).toBe(404);
  expect((await deployed.visit('/missing.php')).status).toBe(404);
  // What a new version begins while a request is under way, the old one finishes.
  const slow = deployed.visit('/slow');
  await deployAgain(deployed.id, 'php-composer');
  expect((await slow).status).toBe(200);
  await remove(deployed);
});

needs(['ruby', 'bundle', 'cc'], 'ruby-bundler', async () => {
  const deployed = await deploy('ruby-bundler');
  expect((await deployed.visit()).body).toBe('Hello from Ruby');
  await remove(deployed);
});
