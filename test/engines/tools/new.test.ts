/** @tier heavy @quarter 1 @covers tools/scripts/new tools/scripts/new.mjs */
// npm run new: in a copy of the project, what it writes is compiled, started and called, and nothing else changes.
import { spawn, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { createEmptyDatabase, type TestDatabase } from '../../support/databases/database';
import { followPage, pageCommands } from '../../support/runner/adding_a_kind_page';
import { copyProject, ROOT } from '../../support/runner/generated_project';
import type { GeneratedProject, Outcome } from '../../support/runner/generated_project';

let project: GeneratedProject;
let copy = '';
let before: Record<string, string>;
let between: Record<string, string>;
let made: Outcome;
let child: Outcome;
let driven: Outcome;

const { contents, generate, run }: Pick<GeneratedProject, 'contents' | 'generate' | 'run'> = {
  contents: () => project.contents(),
  generate: (...words) => project.generate(...words),
  run: (...words) => project.run(...words),
};

beforeAll(() => {
  project = copyProject();
  copy = project.directory;
  before = contents();
  made = generate('widget', '--group', 'Volumes');
  between = contents();
  child = generate('widget_part', '--parent', 'widget', '--prefix', 'wip');
  generate('widget_gear', '--parent', 'widget', '--loop', '--prefix', 'wig');
  driven = generate('engine_room', '--group', 'Volumes', '--driver', '--prefix', 'egr');
  generate('engine_room_pump', '--parent', 'engine_room', '--driver', '--prefix', 'egp');
  for (const words of pageCommands()) generate(...words);
  followPage(copy);
  expect(run('tools/scripts/codegen.mjs')).toMatchObject({ status: 0 });
});

afterAll(() => project.remove());

test('it writes the five files of a kind and changes no other, the generated types apart', () => {
  expect(made).toMatchObject({ status: 0 });
  const after = between;
  const migration = Object.keys(after).find((name) => /^migrations\/\d{4}_widgets\.ts$/.test(name));
  const written = Object.keys(after).filter((name) => !(name in before));
  expect(written.sort()).toEqual(
    [
      migration,
      'models/volumes/widget.ts',
      'resolvers/volumes/widget.ts',
      'schema/volumes/widget.graphql',
      'test/volumes/widget.test.ts',
    ].sort(),
  );
  const changed = Object.keys(before).filter((name) => after[name] !== before[name]);
  expect(changed).toEqual(['resolvers/types.ts', 'schema/types.ts']);
});

test('with --parent it writes the five files of a child, in the group of its parent', () => {
  expect(child).toMatchObject({ status: 0 });
  const written = Object.keys(contents()).filter((name) => !(name in between) && /widget_part/.test(name));
  expect(written.map((name) => name.replace(/\d{4}/, 'NNNN')).sort()).toEqual([
    'migrations/NNNN_widget_parts.ts',
    'models/volumes/widget_part.ts',
    'resolvers/volumes/widget_part.ts',
    'schema/volumes/widget_part.graphql',
    'test/volumes/widget_part.test.ts',
  ]);
});

test('with --driver it writes a kind with a process and a log, and changes no other file', () => {
  expect(driven).toMatchObject({ status: 0 });
  const after = contents();
  const written = Object.keys(after).filter((name) => /engine_room(?!_pump)/.test(name) && !(name in before));
  expect(written.map((name) => name.replace(/\d{4}/, 'NNNN')).sort()).toEqual([
    'drivers/engine_room.ts',
    'jobs/volumes/engine_room.ts',
    'migrations/NNNN_engine_rooms.ts',
    'models/volumes/engine_room.ts',
    'resolvers/volumes/engine_room.ts',
    'schema/volumes/engine_room.graphql',
    'test/engines/volumes/engine_room_conformance.test.ts',
    'test/volumes/engine_room.test.ts',
  ]);
  const changed = Object.keys(before).filter((name) => after[name] !== before[name]);
  expect(changed).toEqual(['resolvers/types.ts', 'schema/types.ts']);
});

test.each([
  ['a parent that is no kind', ['gadget', '--parent', 'thing'], /no models\/<group>\/thing\.ts/],
  ['a parent that has no path of its own', ['gadget', '--parent', 'database_user'], /can be no parent/],
  ['an existing kind', ['volume'], /exists already: schema\/volumes\/volume\.graphql/],
  ['the kind that was just written', ['widget', '--group', 'Volumes'], /exists already/],
  ['a name in camel case', ['DnsZone'], /no name for a kind/],
  ['a name that leaves the folder', ['../widget'], /no name for a kind/],
  ['an unknown group', ['gadget', '--group', 'Gadgets'], /no group of core\/groups\.ts/],
  ['a kind whose group nobody can guess', ['gadget'], /give --group/],
  ['a prefix that is taken', ['gadget', '--group', 'DNS', '--prefix', 'vol'], /taken by models\/volumes\/volume\.ts/],
  ['a table that is taken', ['gadget', '--group', 'DNS', '--plural', 'volumes'], /already/],
  ['no name at all', [], /usage/],
])('it refuses %s and writes nothing', (_, words, complaint) => {
  const files = Object.keys(contents());
  const { status, output } = generate(...words);
  expect(status).toBe(1);
  expect(output).toMatch(complaint);
  expect(Object.keys(contents())).toEqual(files);
});

test('what it wrote type-checks', () => {
    const compiler = path.join(ROOT, 'node_modules/typescript/bin/tsc');
    // What was found of all other files is known from the last check of the sources.
    const known = path.join(ROOT, '.cache/test.tsbuildinfo');
    if (fs.existsSync(known)) fs.cpSync(known, path.join(copy, '.cache/test.tsbuildinfo'));
    expect(run(compiler, '-p', 'tsconfig.test.json')).toEqual({ status: 0, output: '' });
  },
  120_000,
);

test('the tests that it wrote pass but for those that say what to fill in', () => {
  const { status, output } = run(
    path.join(ROOT, 'node_modules/jest/bin/jest.js'),
    'test/volumes/widget.test.ts',
    'test/volumes/widget_part.test.ts',
    'test/volumes/widget_gear.test.ts',
    'test/volumes/engine_room.test.ts',
    'test/volumes/engine_room_pump.test.ts',
    '--reporters',
    'default',
  );
  expect(output).toMatch(/This kind has only a name yet/);
  expect(output).toMatch(/Tests: +5 failed, 12 passed, 17 total/);
  expect(status).toBe(1);
}, 120_000);

describe('the service with the new kind', () => {
  let database: TestDatabase;
  let service: ChildProcess;
  let first: { key: string; project_id: string; base_url: string };

  beforeAll(async () => {
    database = await createEmptyDatabase();
    const dataDir = path.join(copy, 'data');
    const env = {
      PATH: process.env.PATH,
      DATABASE_URL: database.url,
      PLATFORM_DATA_DIR: dataDir,
      PORT: '0',
      ADMIN_PORT: '0',
      INGRESS_PORT: '0',
      VOLUME_DRIVER: 'directory',
    };
    service = spawn(process.execPath, ['--require', './test/support/runner/typescript.js', 'server/main.ts'], {
      cwd: copy,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await ready(service);
    first = JSON.parse(fs.readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as typeof first;
  }, 60_000);

  afterAll(async () => {
    service.kill('SIGTERM');
    await new Promise((resolve) => (service.exitCode === null ? service.once('exit', resolve) : resolve(null)));
    await database.drop();
  });

  async function post(place: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
    const headers = {
      Authorization: `Bearer ${first.key}`,
      'X-Svc-Project': first.project_id,
      'Content-Type': 'application/json',
    };
    const answer = await fetch(first.base_url + place, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }

  it('answers over REST and over GraphQL', async () => {
    const widget = await post('/v2/widgets', { name: 'first' });
    expect(widget).toMatchObject({
      status: 201,
      body: { id: expect.stringMatching(/^wid_/), name: 'first', project_id: first.project_id },
    });
    const part = await post(`/v2/widgets/${String(widget.body.id)}/parts`, { name: 'bolt' });
    expect(part).toMatchObject({ status: 201, body: { widget_id: widget.body.id, name: 'bolt' } });
    const read = await post('/graphql', { query: '{ listWidgets { data { id name } } }' });
    expect(read.body).toEqual({ data: { listWidgets: { data: [{ id: widget.body.id, name: 'first' }] } } });
  });

  it('does what docs/adding-a-kind.md says of bookmarks', async () => {
    const url = 'https://example.com/page';
    const bookmark = await post('/v2/bookmarks', { name: 'first', url });
    expect(bookmark).toMatchObject({ status: 201, body: { url } });
    expect(await post('/v2/bookmarks', { name: 'other', url })).toMatchObject({
      status: 409,
      body: { code: 'already_exists', field: 'url' },
    });
    expect(await post('/v2/bookmarks', { name: 'other', url: 'nowhere' })).toMatchObject({
      status: 422,
      body: { errors: [{ field: 'url' }] },
    });
    const list = '{ listBookmarks(url: "https://example.com/page", sort: "url") { data { name } } }';
    expect((await post('/graphql', { query: list })).body).toEqual({
      data: { listBookmarks: { data: [{ name: 'first' }] } },
    });
    const application = (await post('/v2/applications', { name: 'shop', preset: 'node-web' })).body;
    const place = `/v2/bookmarks/${String(bookmark.body.id)}`;
    expect(await post(`${place}/follow`, { application_id: application.id })).toMatchObject({
      status: 200,
      body: { url: `https://${String(application.default_hostname)}/` },
    });
    expect(await post(`${place}/notes`, { name: 'read-me' })).toMatchObject({ status: 201, body: { name: 'read-me' } });
  });

  it('describes its operations', async () => {
    const document = (await (await fetch(`${first.base_url}/v2/openapi.json`)).json()) as {
      paths: Record<string, object>;
    };
    const places = Object.entries(document.paths).flatMap(([place, item]) =>
      Object.keys(item)
        .filter((method) => /^(get|post|patch|delete)$/.test(method))
        .map((method) => `${method} ${place}`),
    );
    expect(places.filter((place) => place.includes('widgets')).sort()).toEqual([
      'delete /v2/widgets/{id}',
      'delete /v2/widgets/{id}/gears/{gearId}',
      'delete /v2/widgets/{id}/parts/{partId}',
      'get /v2/projects/{id}/widgets',
      'get /v2/widgets',
      'get /v2/widgets/{id}',
      'get /v2/widgets/{id}/gears',
      'get /v2/widgets/{id}/gears/{gearId}',
      'get /v2/widgets/{id}/parts',
      'get /v2/widgets/{id}/parts/{partId}',
      'patch /v2/widgets/{id}',
      'patch /v2/widgets/{id}/gears/{gearId}',
      'patch /v2/widgets/{id}/parts/{partId}',
      'post /v2/projects/{id}/widgets',
      'post /v2/widgets',
      'post /v2/widgets/{id}/gears',
      'post /v2/widgets/{id}/parts',
    ]);
  });
});

/** Resolves when the log says so. Rejects when the process ends before. */
function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout?.on('data', (text: Buffer) => {
      output += text.toString();
      if (output.includes('"msg":"ready"')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the service ended with ${code}: ${output}`)));
  });
}
