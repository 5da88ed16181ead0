/** @user any */
// Which files `svc up` sends: in a repository, what Git has or would take.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { git, openSourceFolders, write, type SourceFolders } from '../support/cli/source_folders';
import { buildCli, openHome } from '../support/cli/svc';

let { directory, findSourceFiles, namesIn, folderOf, repositoryOf }: SourceFolders = {} as SourceFolders;
let folders: SourceFolders;
beforeAll(() => {
  folders = openSourceFolders();
  ({ directory, findSourceFiles, namesIn, folderOf, repositoryOf } = folders);
});
afterAll(() => folders.remove());

describe('in a repository', () => {
  test('files that an upper .gitignore names are not sent, wherever the application is', () => {
    const top = repositoryOf({
      '.gitignore': 'secrets.json\n*.pem\n/export/customers.csv\n/apps/web/dump/\n',
      ...{ 'apps/web/index.html': '', 'apps/web/secrets.json': '', 'apps/web/tls/key.pem': '', 'apps/web/dump/a': '' },
      ...{ 'export/customers.csv': '', 'export/readme': '', 'apps/.gitignore': 'local/\n', 'apps/web/local/x': '' },
    });
    expect(namesIn(path.join(top, 'apps/web'))).toEqual(['index.html']);
    expect(namesIn(path.join(top, 'export'))).toEqual(['readme']);
    expect(namesIn(top)).toEqual(['.gitignore', 'apps/.gitignore', 'apps/web/index.html', 'export/readme']);
  });

  test('nor those of .git/info/exclude and of the excludes of the person', () => {
    const top = repositoryOf({ 'a.txt': '', 'notes.txt': '', 'key.p12': '', 'scratch~': '' });
    fs.appendFileSync(path.join(top, '.git/info/exclude'), 'notes.txt\n');
    write(directory, { '.config/git/ignore': '*~\n', excludes: '*.p12\n' });
    expect(namesIn(top)).toEqual(['a.txt', 'key.p12']);
    git(top, 'config', 'core.excludesFile', path.join(directory, 'excludes'));
    expect(namesIn(top)).toEqual(['a.txt', 'scratch~']);
    fs.rmSync(path.join(directory, '.config/git'), { recursive: true });
  });

  test('what Git has is sent, whatever a pattern says', () => {
    const top = repositoryOf(
      {
        '.gitignore': 'logs\n*.map\nnode_modules/\n.env*\n',
        ...{ 'src/components/Logs/index.js': '', 'logs/today': '', 'kept.map': '', 'other.map': '' },
        ...{ 'vendor/node_modules/a.js': '', 'node_modules/b.js': '', '.env.production': 'A=1', '.env': 'B=2' },
      },
      'kept.map',
      'vendor/node_modules/a.js',
      '.env.production',
    );
    expect(findSourceFiles(top)).toMatchObject({ notices: [] });
    const all = ['.env.production', '.gitignore', 'kept.map', 'src/components/Logs/index.js'];
    expect(namesIn(top)).toEqual([...all, 'vendor/node_modules/a.js']);
    git(top, 'config', 'core.ignoreCase', 'true');
    expect(namesIn(top)).toEqual([...all.slice(0, 3), 'vendor/node_modules/a.js']);
    git(top, 'add', '--force', 'src');
    expect(namesIn(top)).toContain('src/components/Logs/index.js');
  });

  test('a .env that Git neither has nor ignores stays here, and is named', () => {
    const { files, notices } = findSourceFiles(repositoryOf({ '.env': '', 'web/.env.local': '', '.env.example': '' }));
    expect(files.map(({ name }) => name)).toEqual(['.env.example']);
    expect(notices).toEqual(['Not sent: .env, web/.env.local. Their variables are set with `svc env push`.']);
  });

  test('what was deleted, or is below a folder that became a link, is not there', () => {
    const top = repositoryOf({ a: '', 'gone/b': '', 'was/c': '', 'was/d/e': '', 'x/y': '' }, '.');
    fs.rmSync(path.join(top, 'gone'), { recursive: true });
    fs.rmSync(path.join(top, 'was'), { recursive: true });
    write(top, { 'elsewhere/c': 'another' });
    fs.symlinkSync('elsewhere', path.join(top, 'was'));
    fs.rmSync(path.join(top, 'x'), { recursive: true });
    fs.writeFileSync(path.join(top, 'x'), '');
    expect(findSourceFiles(top).files.map(({ name, kind }) => [name, kind])).toEqual([
      ['a', 'file'],
      ['elsewhere/c', 'file'],
      ['was', 'link'],
      ['x', 'file'],
    ]);
  });

  test('submodules and repositories inside are asked for their own; one that is missing is said', () => {
    const inner = repositoryOf({ '.gitignore': '*.key\n', 'lib.js': '', 'a.key': '' }, '.gitignore', 'lib.js');
    const top = repositoryOf({ 'index.js': '' }, 'index.js');
    git(top, 'submodule', '--quiet', 'add', inner, 'vendor/lib');
    git(top, 'submodule', '--quiet', 'add', inner, 'vendor/gone');
    git(top, 'commit', '--quiet', '--message=submodules');
    git(top, 'submodule', '--quiet', 'deinit', '--force', 'vendor/gone');
    git(top, 'clone', '--quiet', inner, 'copy');
    write(top, { 'vendor/lib/own.key': '', 'vendor/lib/new.js': '', 'copy/own.key': '' });
    const inside = ['.gitignore', 'lib.js'];
    const { files, notices } = findSourceFiles(top);
    expect(files.map(({ name }) => name)).toEqual([
      ...['.gitmodules', ...inside.map((name) => `copy/${name}`), 'index.js'],
      ...[...inside, 'new.js'].map((name) => `vendor/lib/${name}`),
    ]);
    expect(notices).toEqual([
      'The submodule vendor/gone is not checked out, so its files are not sent: git submodule update --init',
    ]);
    expect(namesIn(path.join(top, 'vendor/lib'))).toEqual([...inside, 'new.js']);
  });

  test('worktrees, links to the folder, and hooks of another repository change nothing', () => {
    const top = repositoryOf({ '.gitignore': '*.pem\n', 'web/a.js': '' }, '.');
    const tree = path.join(directory, 'tree');
    git(top, 'worktree', 'add', '--quiet', tree, 'HEAD');
    write(tree, { 'web/b.pem': '', 'web/c.js': '' });
    fs.symlinkSync(path.join(tree, 'web'), path.join(directory, 'linked'));
    expect(namesIn(path.join(directory, 'linked'))).toEqual(['a.js', 'c.js']);
    Object.assign(process.env, { GIT_DIR: path.join(top, '.git'), GIT_INDEX_FILE: path.join(top, '.git/index') });
    try {
      expect(namesIn(repositoryOf({ 'own.js': '' }))).toEqual(['own.js']);
    } finally {
      delete process.env.GIT_DIR;
      delete process.env.GIT_INDEX_FILE;
    }
  });

  test('a folder that Git ignores is sent where it is deployed, and said', () => {
    const top = repositoryOf({ '.gitignore': 'dist/\n', 'dist/index.html': '', 'dist/.gitignore': '*.map\n' });
    write(top, { 'dist/a.map': '', 'dist/js/b.js': '' });
    expect(namesIn(top)).toEqual(['.gitignore']);
    const { files, notices } = findSourceFiles(path.join(top, 'dist'));
    expect(files.map(({ name }) => name)).toEqual(['.gitignore', 'index.html', 'js/b.js']);
    expect(notices).toEqual([expect.stringContaining('Git ignores the folder dist (.gitignore:1:dist/).')]);
  });

  test('.svcignore leaves out what Git has, and takes back what it ignores, also from the top', () => {
    const top = repositoryOf(
      {
        '.gitignore': 'dist/\n*.pem\n',
        '.svcignore': '!dist/\ntest/\n',
        ...{ 'web/dist/a.js': '', 'web/dist/b.pem': '', 'web/test/c.js': '', 'web/d.js': '' },
      },
      'web/test/c.js',
    );
    expect(namesIn(path.join(top, 'web'))).toEqual(['d.js', 'dist/a.js', 'dist/b.pem']);
    write(top, { 'web/.svcignore': '*.pem\n' });
    expect(namesIn(path.join(top, 'web'))).toEqual(['.svcignore', 'd.js', 'dist/a.js']);
  });

  test('a setting of the repository starts no program', () => {
    const top = repositoryOf({ a: '' }, 'a');
    const proof = path.join(directory, 'started');
    write(directory, { 'program.sh': `#!/bin/sh\ntouch ${proof}\n` });
    fs.chmodSync(path.join(directory, 'program.sh'), 0o755);
    git(top, 'config', 'core.fsmonitor', path.join(directory, 'program.sh'));
    expect(namesIn(top)).toEqual(['a']);
    expect(fs.existsSync(proof)).toBe(false);
  });

  test('names are those of the disk, and one that is no UTF-8 is refused unless it is left out', () => {
    const top = repositoryOf({ 'it\'s "quoted"\nand é.txt': '', ' b\\c': '' });
    expect(namesIn(top)).toEqual([' b\\c', 'it\'s "quoted"\nand é.txt']);
    for (const folder of [top, folderOf({ a: '' })]) {
      fs.writeFileSync(Buffer.concat([Buffer.from(`${folder}/caf`), Buffer.of(0xe9), Buffer.from('.txt')]), '');
      expect(() => findSourceFiles(folder)).toThrow('is not encoded in UTF-8, so it cannot be sent.');
      write(folder, { '.svcignore': 'caf*\n' });
      expect(namesIn(folder)).toContain('.svcignore');
    }
  });
});

test('without the program git, the patterns of the repository decide, also those above, and it is said', () => {
  const top = repositoryOf(
    {
      '.gitignore': 'secrets.json\n*.pem\n/apps/web/dump/\n',
      ...{ 'apps/web/index.html': '', 'apps/web/secrets.json': '', 'apps/web/tls/key.pem': '', 'apps/web/dump/a': '' },
      ...{ 'apps/web/notes.txt': '', 'apps/.gitignore': 'local/\n', 'apps/web/local/x': '', 'apps/web/kept.pem': '' },
    },
    'apps/web/kept.pem',
  );
  fs.appendFileSync(path.join(top, '.git/info/exclude'), 'notes.txt\n');
  expect(namesIn(path.join(top, 'apps/web'))).toEqual(['index.html', 'kept.pem']);
  const { PATH } = process.env;
  process.env.PATH = directory;
  try {
    const { files, notices } = findSourceFiles(path.join(top, 'apps/web'));
    expect(files.map(({ name }) => name)).toEqual(['index.html']);
    expect(notices).toEqual([expect.stringMatching(/^The program git is missing here, so \.gitignore alone says/)]);
    expect(namesIn(top)).toEqual(['.gitignore', 'apps/.gitignore', 'apps/web/index.html']);
  } finally {
    process.env.PATH = PATH;
  }
});

test('where Git refuses, nothing is sent and the reason is said', async () => {
  const home = openHome();
  try {
    buildCli();
    const env = {
      SVC_URL: 'http://127.0.0.1:1',
      SVC_TOKEN: 'x',
      SVC_APP: `app_${'0'.repeat(26)}`,
      SVC_PROJECT: 'prj_1',
    };
    write(home.folder, { 'index.html': '' });
    git(home.folder, 'init', '--quiet');
    // As in a container whose user is another one than that of the checkout.
    const strange = { ...env, GIT_TEST_ASSUME_DIFFERENT_OWNER: '1' };
    const refused = await home.svc(['up'], { env: strange });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/dubious ownership[^]*safe\.directory/) });
    const config = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };
    expect((await home.svc(['up'], { env: { ...strange, ...config } })).stderr).toContain('Could not connect');
  } finally {
    home.remove();
  }
});

test('outside of a repository the .gitignore files of the folder decide, by the case of its letters', () => {
  const folder = folderOf({
    '.gitignore': 'logs\n*.log\n!keep.log\n/build/\n',
    ...{
      'src/components/Logs/index.js': '',
      'logs/a': '',
      'x.log': '',
      'keep.log': '',
      'build/y': '',
      'src/build/z': '',
    },
    ...{ 'src/.gitignore': '!*.log\n', 'src/deep.log': '', 'node_modules/m.js': '', '.env.production': '' },
  });
  expect(findSourceFiles(folder)).toMatchObject({ notices: [expect.stringContaining('Not sent: .env.production.')] });
  const own = ['.gitignore', 'keep.log', 'src/.gitignore', 'src/build/z'];
  expect(namesIn(folder)).toEqual([...own, 'src/components/Logs/index.js', 'src/deep.log']);
  write(folder, { '.svcignore': '!logs/\nsrc/\n' });
  expect(namesIn(folder)).toEqual(['.gitignore', '.svcignore', 'keep.log', 'logs/a']);
});

test('of made-up repositories the files are those that Git takes', () => {
  const words = ['a', 'b', 'logs', 'Logs', 'x.pem', '.env.example', 'é', 'a b'];
  let seed = Date.now() % 2 ** 31;
  const seeded = seed;
  const pick = <One>(from: readonly One[]): One => {
    seed = (seed * 48_271) % 2_147_483_647;
    return from[seed % from.length] as One;
  };
  const pathOf = (): string => Array.from({ length: pick([1, 2, 3]) }, () => pick(words)).join('/');
  for (let round = 0; round < 12; round += 1) {
    const top = repositoryOf({});
    for (let count = 0; count < 40; count += 1)
      try {
        write(top, { [pathOf()]: '' });
      } catch {
        // A file has the name of the folder.
      }
    const folders = ['.', ...fs.readdirSync(top).filter((name) => fs.statSync(path.join(top, name)).isDirectory())];
    const tracked = git(top, 'ls-files', '-z', '--others').split('\0').filter(Boolean);
    git(top, 'add', '--', ...[1, 2, 3].map(() => pick(tracked)));
    for (const folder of folders.filter((name) => name !== '.git').slice(0, 4)) {
      const line = (): string =>
        `${pick(['', '', '!', '/', '**/'])}${pick([...words, '*', '?', '*.pem'])}${pick(['', '/'])}`;
      fs.writeFileSync(path.join(top, folder, '.gitignore'), `${[line(), line(), line()].join('\n')}\n`);
    }
    for (const folder of folders.filter((name) => name !== '.git' && pick([true, false]))) {
      const found = namesIn(path.join(top, folder));
      const index = path.join(directory, `index-${round}`);
      fs.copyFileSync(path.join(top, '.git/index'), index);
      const taken = (...args: string[]): string =>
        execFileSync('git', args, { cwd: top, env: { ...process.env, GIT_INDEX_FILE: index }, encoding: 'utf8' });
      taken('add', '--all');
      const all = taken('ls-files', '-z').split('\0').filter(Boolean);
      const below =
        folder === '.'
          ? all
          : all.flatMap((name) => (name.startsWith(`${folder}/`) ? [name.slice(folder.length + 1)] : []));
      // A folder that is ignored whole is sent by its own rules.
      if (below.length) expect([seeded, round, folder, found]).toEqual([seeded, round, folder, below.sort()]);
    }
  }
});
