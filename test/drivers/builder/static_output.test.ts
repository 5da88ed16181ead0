// Where a build leaves its site: usual folders, those of frameworks, and the one that the owner sets.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openWorkshop } from '../../support/runner/built';
import { buildError, detect, setUpPlans } from '../../support/deployments/plans';

setUpPlans();
const workshop = openWorkshop();
afterAll(() => workshop.close());

const builds = (command: string) => ({ 'package.json': { scripts: { build: command } } });
const writes = (directory: string) => builds(`mkdir -p ${directory} && echo made > ${directory}/index.html`);
async function served(files: Record<string, string | object>, changed = {}): Promise<string> {
  const built = await workshop.build(workshop.source(files), changed);
  expect(built).toMatchObject({ code: 0 });
  return (await fetch((await workshop.start(built)).url)).text();
}

test.each([
  ...['www', 'docs/.vitepress/dist', '.output/public', 'storybook-static', 'build/client', 'dist/client', '_site'],
  ...['docs/.vuepress/dist', 'site'],
])('a build may leave its site in %s', async (directory) => {
  expect(await served(writes(directory))).toBe('made\n');
  expect(await served({ 'site.md': '' }, { build_command: writes(directory)['package.json'].scripts.build })).toBe(
    'made\n',
  );
});

test('what a build made comes before pages of the source', async () => {
  expect(await served({ ...writes('build'), 'dist/index.html': 'old', 'public/index.html': 'template' })).toBe(
    'made\n',
  );
  const source = { ...builds('echo nothing'), 'www/index.html': 'source', 'docs/index.html': 'source' };
  const built = await workshop.build(workshop.source(source));
  expect(built.code).toBe(1);
  expect(built.output).toMatch(/left no index\.html in dist\/, .*Set build\.output_directory/);
  expect(built.output).toMatch(/These folders have an index\.html: docs www\./);
});

describe('build.output_directory', () => {
  test('is what is served, whatever else there is', async () => {
    const files = { ...writes('docs'), 'dist/index.html': 'old', 'server.js': '' };
    expect(await served(files, { output_directory: 'docs' })).toBe('made\n');
    const build_command = 'mkdir "my site" && echo made > "my site/index.html"';
    expect(await served({}, { output_directory: 'my site', build_command })).toBe('made\n');
    expect(await served({ 'html/index.html': 'plain' }, { output_directory: 'html' })).toBe('plain');
    const members = { 'apps/web/package.json': writes('out/x')['package.json'] };
    expect(await served(members, { root_directory: 'apps/web', output_directory: 'out/x' })).toBe('made\n');
  });

  test('says which start command it replaces, and keeps process types of a Procfile', async () => {
    const start = { 'package.json': { scripts: { start: 'node x.js' } } };
    const plan = await detect({ ...start, 'html/index.html': '' }, { output_directory: 'html' });
    expect(plan.notes).toEqual([expect.stringMatching(/output_directory is set.*`node x\.js` does not run/)]);
    const worker = await detect({ Procfile: 'worker: node x\nrelease: true\n' }, { output_directory: 'html' });
    expect(worker).toMatchObject({ processes: { worker: 'node x', web: /static_server/ }, release_command: 'true' });
  });

  test('a folder that is not there, has no page, or leads out of the source fails the build', async () => {
    const fails = async (files: Record<string, string | object>, output_directory: string): Promise<string> => {
      const { code, output } = await workshop.build(workshop.source(files), { output_directory });
      expect(code).toBe(1);
      return output;
    };
    expect(await fails(writes('dist'), 'docs')).toMatch(/The build did not make the folder `docs` that build\.output/);
    expect(await fails({}, "it's")).toMatch(/The source does not have the folder `it's` that build\.output_directory/);
    expect(await fails(builds('mkdir docs'), 'docs')).toMatch(/There is no index\.html in the folder `docs`/);
    expect(await fails(builds('ln -s / docs'), 'docs')).toMatch(/A link leads the folder `docs`.*out of the source/);
    expect(await fails(builds('ln -s . docs'), 'docs')).toMatch(/A link leads the folder `docs`.*out of the source/);
    const directory = workshop.source({});
    const outside = workshop.source({ 'index.html': 'outside' });
    mkdirSync(path.join(directory, 'a'));
    symlinkSync(outside, path.join(directory, 'a/b'));
    expect((await workshop.build(directory, { output_directory: 'a/b' })).output).toMatch(/A link leads/);
    writeFileSync(path.join(directory, 'file'), '');
    expect((await workshop.build(directory, { output_directory: 'file' })).code).toBe(1);
  });

  test('is the root directory where nothing is built', async () => {
    expect(await served({ 'index.html': 'plain', 'notes.txt': '' }, { output_directory: '.' })).toBe('plain');
  });

  test('is refused where it cannot be honoured', async () => {
    const refused = (files: Record<string, string | object>, output_directory: string): Promise<string> =>
      buildError(detect(files, { output_directory }));
    expect(await refused({ Procfile: 'web: node x\n' }, 'docs')).toMatch(
      /Procfile starts a program as web\. Remove one/,
    );
    expect(await refused(writes('dist'), '.')).toMatch(/is `\.`, which holds the sources/);
  });
});
