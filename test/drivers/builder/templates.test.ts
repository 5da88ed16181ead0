/** @tier heavy @quarter 1 @covers drivers/builder templates */
// Every template is exported, built by its script and started, as a deployment of its preset would.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { presetDefinitions } from '../../../core/catalog/catalogs';
import { driverContext } from '../../../core/driver';
import { SourceError, type SourceDriver } from '../../../drivers/source';
import { openSource } from '../../../drivers/source/git';
import { openWorkshop, type Built, type Running } from '../../support/runner/built';
import { createEmptyDatabase } from '../../support/databases/database';
import { needs } from '../../support/runner/programs';
import { publicAddresses } from '../../support/outbound';

const folder = mkdtempSync(path.join(os.tmpdir(), 'templates-'));
const workshop = openWorkshop();
let source: SourceDriver;

beforeAll(async () => {
  source = await openSource({
    directory: path.join(folder, 'runtime'),
    sizeMb: 1,
    allowHttpGit: false,
    allowLocalGit: false,
    outbound: publicAddresses,
  });
});

afterAll(async () => {
  await workshop.close();
  rmSync(folder, { recursive: true, force: true });
});

const builds = new Map<string, Promise<Built>>();

/** Each template is built once: whatever runs of it runs from a copy. */
function built(template: string): Promise<Built> {
  const made = builds.get(template) ?? build(template);
  builds.set(template, made);
  return made;
}

async function build(template: string): Promise<Built> {
  const directory = path.join(folder, template);
  await source.exportTemplate(template, directory, driverContext(5_000));
  const made = await workshop.build(directory);
  expect(made).toMatchObject({ code: 0 });
  return made;
}

async function page(running: Running, target = '/'): Promise<string> {
  const answer = await fetch(running.url + target);
  expect(answer.headers.get('content-type')).toMatch(/^(text\/html; charset=utf-8|application\/json)/);
  return answer.text();
}

test('each preset has its template, each template its preset', () => {
  expect(readdirSync(path.resolve(__dirname, '../../../templates')).sort()).toEqual(
    presetDefinitions.map(({ template }) => template).sort(),
  );
});

test('a template that is not shipped', async () => {
  for (const name of ['nothing', '../drivers', '', '.']) {
    const error: unknown = await source
      .exportTemplate(name, path.join(folder, 'none'), driverContext(5_000))
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SourceError);
    expect(error).toMatchObject({ failure: 'no_repository' });
  }
  const half = path.join(folder, 'half');
  mkdirSync(half);
  writeFileSync(path.join(half, 'of-before'), '');
  await source.exportTemplate('static-site', half, driverContext(5_000));
  expect(readdirSync(half).sort()).toEqual(['404.html', 'favicon.svg', 'index.html', 'style.css']);
});

// The processes of the preset are those that the source says, so that the first deployment starts all of them.
const planned = presetDefinitions.filter(({ needs: { programs } }) => programs?.includes('go') !== true);
for (const { id, template, processes, needs: wanted } of planned)
  needs(...(wanted.programs ?? [])).test(`${id} names the processes of its template`, async () => {
    const { plan } = await built(template);
    for (const { type, command } of processes) expect(command ?? plan.processes[type]).toBeTruthy();
    expect(Object.keys(plan.processes).sort()).toEqual(processes.map(({ type }) => type).sort());
  });

test('static-site', async () => {
  const running = await workshop.start(await built('static-site'));
  expect(await page(running)).toContain('It is online.');
  expect((await fetch(`${running.url}/style.css`)).headers.get('content-type')).toBe('text/css; charset=utf-8');
  const lost = await fetch(`${running.url}/nowhere`);
  expect([lost.status, await lost.text()]).toEqual([404, expect.stringContaining('Nothing here.')]);
  expect(await running.stop()).toBe(0);
});

test('node-web', async () => {
  const made = await built('node-web');
  expect(made.plan.steps).toEqual([]);
  const running = await workshop.start(made, { GREETING: '<b>hello</b>' });
  expect(await page(running)).toContain('<h1>&#60;b&#62;hello&#60;/b&#62;</h1>');
  expect(JSON.parse(await page(running, '/api/state'))).toMatchObject({ node: process.version });
  expect((await fetch(`${running.url}/nowhere`)).status).toBe(404);
  expect(await running.stop()).toBe(0);
  expect(await page(await workshop.start(made))).toContain('Node.js is running.');
});

test('node-worker', async () => {
  const made = await built('node-worker');
  const [web, worker] = [await workshop.start(made), await workshop.start(made, { WORK_EVERY_SECONDS: '1' }, 'worker')];
  expect(await page(web)).toContain('One for you, one for the work.');
  for (let i = 0; i < 100 && !worker.output().includes('Piece 2'); i += 1)
    await new Promise((resolve) => setTimeout(resolve, 50));
  expect(worker.output()).toMatch(/Worker started[^]*Piece 1: 17984 primes[^]*Piece 2: 17984 primes/);
  expect(await worker.stop()).toBe(0);
  expect(worker.output()).toMatch(/Stopping after \d+ pieces of work\n$/);
  expect(await web.stop()).toBe(0);
});

const hasPython = spawnSync('python3', ['--version']).status === 0;
(hasPython || process.env.CI ? test : test.skip)('python-web (needs python3)', async () => {
  const made = await built('python-web');
  // Packages of the host's Python are not those of an application.
  expect(made.plan.steps.map(({ name }) => name)).toEqual(['Python environment']);
  const running = await workshop.start(made, { GREETING: '<b>UPTIME</b>' });
  expect(await page(running)).toContain('<h1>&lt;b&gt;UPTIME&lt;/b&gt;</h1>');
  expect(JSON.parse(await page(running, '/api/state'))).toHaveProperty('python');
  expect(await running.stop()).toBe(0);
});

(spawnSync('go', ['version']).status === 0 ? test : test.skip)(
  'go-web (needs go)',
  async () => {
    const running = await workshop.start(await built('go-web'));
    expect(await page(running)).toContain('Go is running.');
    expect(await running.stop()).toBe(0);
  },
  120_000,
);

describe('node-fullstack', () => {
  let made: Built;
  beforeAll(async () => {
    made = await built('node-fullstack');
  });

  test('says that it has no database', async () => {
    const running = await workshop.start(made);
    expect(await page(running)).toContain('<h1>Guest book</h1>');
    expect(JSON.parse(await page(running, '/api/state'))).toEqual({ database: null });
    expect(existsSync(path.join(made.directory, 'dist/index.html.br'))).toBe(true);
    expect(await running.stop()).toBe(0);
  });

  test('with a database: writes, reads, and keeps its address to itself', async () => {
    const database = await createEmptyDatabase();
    const running = await workshop.start(made, { DATABASE_URL: database.url });
    const write = (body: object) => fetch(`${running.url}/api/entries`, { method: 'POST', body: JSON.stringify(body) });
    expect((await write({ name: 'Ada', message: "it's \u00e4 test; drop table guest_book" })).status).toBe(201);
    expect((await write({ name: '', message: 'x' })).status).toBe(422);
    const text = await page(running, '/api/state');
    expect(JSON.parse(text)).toMatchObject({
      database: { reachable: true, version: expect.stringMatching(/^\d+/) },
      entries: [{ name: 'Ada', message: "it's \u00e4 test; drop table guest_book" }],
    });
    const { password } = new URL(database.url);
    if (password) expect(text).not.toContain(decodeURIComponent(password));
    expect(await running.stop()).toBe(0);
    await database.drop();
  });

  test('with a database that does not answer', async () => {
    const running = await workshop.start(made, { DATABASE_URL: 'postgres://ada:secret-word@127.0.0.1:1/shop' });
    expect(JSON.parse(await page(running, '/api/state'))).toEqual({ database: { reachable: false } });
    expect(running.output()).not.toContain('secret-word');
    expect(running.child.exitCode).toBeNull();
  });
});
