/** @user any */
// Projects, applications, what is attached to them, and what is under way.
import * as fs from 'node:fs';
import path from 'node:path';
import { buildCli, openHome, type Home, type Ran } from '../support/cli/svc';
import { deployed } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
const ids: Record<string, string> = {};
beforeAll(async () => {
  buildCli();
  // Nobody does any work: what is made stays as it was made.
  service = await startService();
  home = openHome(service);
  const make = async (what: string, body: object): Promise<string> =>
    (await service.call('POST', `/v2/${what}`, { body })).body.id;
  const source = { type: 'upload' };
  ids.shop = await make('applications', { name: 'shop', source });
  ids.image = await make('applications', {
    name: 'from-image',
    source: { type: 'image', image: 'registry.example.com/app:1' },
  });
  ids.uploads = await make('volumes', { name: 'uploads', size_gb: 1 });
  ids.orders = await make('databases', { name: 'orders', engine: 'postgresql' });
  await service.sql(`update volumes set status = 'available' where id = '${ids.uploads}'`);
  await home.output(['link', 'shop']);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const svc = (...words: string[]): Promise<Ran> => home.svc(words);
const output = (...words: string[]): Promise<string> => home.output(words);

test('apps lists applications, names first', async () => {
  const lines = (await output('apps')).trim().split('\n');
  expect(lines.map((line) => line.split('\t')[0])).toEqual(['from-image', 'shop']);
  expect(lines[1]).toMatch(new RegExp(`\\t${ids.shop}$`));
});

test('projects are listed, created, and deleted by their name', async () => {
  expect(await output('projects')).toMatch(/\towner\tyes\tprj_\w+\n$/);
  expect(await output('projects', 'create', 'Second', '--field', 'name')).toBe('Second\n');
  expect(await svc('projects', 'use', 'Second')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/here is a token\.\nSet SVC_PROJECT=prj_\w+ instead\.\n$/),
  });
  expect(await svc('projects', 'rm', 'Second')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  expect(await svc('projects', 'rm', 'Second', '--yes')).toMatchObject({ code: 0, stdout: '' });
  expect(await svc('projects', 'rm', 'Second', '--yes')).toMatchObject({ code: 4 });
});

test('a project that is used is kept with the login, and commands act in it', async () => {
  const person = openHome();
  try {
    await person.output(['login', '--url', service.url, '--token', '-'], { input: service.key });
    const made = (await person.output(['projects', 'create', 'Third', '--use', '--field', 'id'])).trim();
    expect(person.credentials().servers[service.url]?.project_id).toBe(made);
    expect(await person.output(['apps'])).toBe('');
    const first = (await person.output(['projects', '--json'])).includes(service.project);
    expect(first).toBe(true);
    await person.output(['projects', 'use', service.project]);
    expect(await person.output(['apps', '--field', 'name'])).toBe('from-image\nshop\n');
    await person.output(['projects', 'rm', 'Third', '--yes']);
  } finally {
    person.remove();
  }
});

test('members, and the page of the application, are addresses of the dashboard', async () => {
  expect(await output('members')).toBe(`${service.url}/projects/${service.project}/members\n`);
  expect(await output('open', '--dashboard')).toBe(`${service.url}/applications/${ids.shop}\n`);
});

test('volumes are created, enlarged, attached, detached and deleted', async () => {
  expect(await output('volumes', 'create', 'cache', '--size', '2')).toMatch(/^name\tcache\nsize\t2 GB\n/);
  expect(await svc('volumes', 'grow', 'cache')).toMatchObject({ code: 2 });
  expect(await svc('attach', 'uploads')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Pass --mount, such as --mount /data.'),
  });
  expect(await svc('attach', 'uploads', '--mount', '/data')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('mount path\t/data'),
    stderr: 'It takes effect with the next deployment or restart: svc restart\n',
  });
  expect(await output('attachments')).toBe('uploads\tvolume\t/data\n');
  expect(await output('volumes')).toMatch(/^uploads\t1 GB\tin_use\tshop\t\/data\tvol_/m);
  expect(await svc('detach', 'uploads')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  await output('detach', 'uploads', '--yes');
  expect(await svc('detach', 'uploads', '--yes')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('svc attachments'),
  });
  expect(await output('attachments')).toBe('');
  await output('volumes', 'rm', 'cache', '--yes');
});

test('what is attached twice, or nowhere, is said', async () => {
  expect(await svc('attach', 'lost')).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/no database and no volume "lost"[^]*orders \(database\), uploads \(volume\)/),
  });
  await output('volumes', 'create', 'orders');
  expect(await svc('attach', 'orders')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/Pass the id\.\ndatabase: db_\w+, volume: vol_\w+\n$/),
  });
});

test('cancel ends the newest deployment that is under way', async () => {
  expect(await svc('cancel')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('No deployment is under way.'),
  });
  expect(await svc('deploy')).toMatchObject({ code: 2, stderr: expect.stringContaining('Deploy this folder: svc up') });
  fs.writeFileSync(path.join(home.folder, 'index.html'), 'hello');
  await output('up', '--detach');
  expect(await output('cancel')).toMatch(/^number\t1\nstatus\tcanceled\n/);
  expect(await output('deployments')).toMatch(/^1\tcanceled\tmanual\tupload\t/);
  expect(await svc('cancel', 'v1')).toMatchObject({ code: 1 });
});

test('metrics of an application that never ran are none', async () => {
  expect(await output('metrics')).toBe('');
  expect(JSON.parse(await output('metrics', '--since', '6h', '--json'))).toHaveProperty('series');
});

test('delete asks for the name, deletes the application and removes the link', async () => {
  expect(await svc('delete')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('The application shop will be deleted'),
  });
  expect(await svc('delete', 'from-image', '--yes')).toMatchObject({
    code: 0,
    stderr: 'Deleted the application from-image.\n',
  });
  expect(fs.existsSync(path.join(home.folder, '.svc/link.json'))).toBe(true);
  expect((await svc('delete', '--yes')).stderr).toContain('is no longer linked.');
  expect(fs.existsSync(path.join(home.folder, '.svc/link.json'))).toBe(false);
  expect(await output('apps')).toBe('');
});

test('a problem is said once: fields without the sentence of the catalog, and no sentence twice', async () => {
  const { stderr } = await svc('volumes', 'create', 'U!');
  expect(stderr).toMatch(/^Error: One or more fields of the request are invalid\.\n {2}name: [^\n]+\n\(code /);
});

test('promote deploys what another application runs, also of another project', async () => {
  const other = await service.newProject();
  const made = await service.call('POST', '/v2/applications', { project: other.id, body: { name: 'elsewhere' } });
  await deployed(service, made.body.id);
  for (const name of ['target', 'bare'])
    expect((await service.call('POST', '/v2/applications', { body: { name } })).status).toBe(201);
  const promote = (...words: string[]): Promise<Ran> => svc('promote', ...words, '--app', 'target');
  expect(await promote('bare')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no active deployment'),
  });
  expect(await promote('elsewhere')).toMatchObject({ code: 4, stderr: expect.stringContaining('bare') });
  expect(await promote('elsewhere', '--from-project', other.id)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Deploying what deployment 1 of elsewhere runs.'),
  });
  expect(await promote('elsewhere', '--from-project', 'nowhere')).toMatchObject({ code: 4 });
});
