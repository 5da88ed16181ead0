/** @user any */
// Archives of sources that programs of others make are unpacked as they are.
import { mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { checkArchive, unpackSource } from '../../../drivers/source/archive/unpack';
import { run, SITE, tarOf, useFolder, writeSite, zipOf } from '../../support/builds/archives';
import { needs } from '../../support/runner/programs';

const folder = useFolder();
const LIMITS = { bytes: 64 * 2 ** 20, files: 10_000 };
let serial = 0;
const fresh = (): string => {
  const directory = path.join(folder.path, String((serial += 1)));
  mkdirSync(directory);
  return directory;
};
const unpacked = async (file: string, limits = LIMITS): Promise<string> => {
  const directory = fresh();
  const checked = await checkArchive(file, limits, driverContext(60_000));
  expect(await unpackSource(file, directory, limits, driverContext(60_000))).toEqual(checked);
  return directory;
};

function expectSite(directory: string, below = ''): void {
  const at = path.join(directory, below);
  for (const [name, text] of Object.entries(SITE)) expect(readFileSync(path.join(at, name), 'utf8')).toBe(text);
  expect(readlinkSync(path.join(at, 'home.html'))).toBe('index.html');
  expect(statSync(path.join(at, 'bin/start')).mode & 0o777).toBe(0o755);
  expect(statSync(path.join(at, 'index.html')).mode & 0o777).toBe(0o644);
}

const { test: python } = needs('python3');

describe('made by others', () => {
  let site: string;
  beforeAll(() => {
    site = writeSite(fresh());
  });
  const out = (): string => path.join(fresh(), 'a');

  test.each([
    ['GNU tar', ['tar', '-czf']],
    ['GNU tar, pax', ['tar', '--format=posix', '-czf']],
    ['GNU tar, ustar', ['tar', '--format=ustar', '-czf']],
    ['GNU tar, v7', ['tar', '--format=v7', '-czf']],
  ])('%s', async (_, [program = '', ...given]) => {
    const file = out();
    run(site, program, ...given, file, '.');
    expectSite(await unpacked(file));
  });

  needs('bsdtar').test.each(['pax', 'ustar', 'gnutar'])('bsdtar, %s', async (format) => {
    const file = out();
    run(site, 'bsdtar', '--format', format, '-czf', file, '.');
    expectSite(await unpacked(file));
  });

  needs('bsdtar').test('a zip of bsdtar, whose entries have sizes behind them', async () => {
    const file = out();
    run(site, 'bsdtar', '--format', 'zip', '-cf', file, '.');
    expectSite(await unpacked(file));
  });

  needs('zip').test('Info-ZIP with links', async () => {
    const file = `${out()}.zip`;
    run(site, 'zip', '-qry', file, '.');
    expectSite(await unpacked(file));
  });

  python('tarfile of Python', async () => {
    const file = out();
    run(site, 'python3', '-c', `import tarfile; tarfile.open('${file}', 'w:gz').add('.')`);
    expectSite(await unpacked(file));
  });

  python('zipfile of Python', async () => {
    const file = `${out()}.zip`;
    run(site, 'python3', '-m', 'zipfile', '-c', file, 'index.html', 'css');
    const directory = await unpacked(file);
    expect(readFileSync(path.join(directory, 'css/site.css'), 'utf8')).toBe('body{}');
  });

  test('git archive, with a comment for all and a prefix', async () => {
    const repository = writeSite(fresh());
    run(repository, 'git', 'init', '-q');
    run(repository, 'git', 'add', '-A');
    run(repository, 'git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qm', 'a');
    for (const format of ['tar.gz', 'zip']) {
      const file = out();
      run(repository, 'git', 'archive', `--format=${format}`, '--prefix=shop-1.0/', '-o', file, 'HEAD');
      expectSite(await unpacked(file), 'shop-1.0');
      expect(await checkArchive(file, LIMITS, driverContext(9_000))).toMatchObject({ folder: 'shop-1.0', files: 4 });
    }
  });

  test('npm pack', async () => {
    const directory = fresh();
    writeFileSync(path.join(directory, 'package.json'), '{"name": "shop", "version": "1.0.0"}');
    writeFileSync(path.join(directory, 'server.js'), 'x');
    run(directory, 'npm', 'pack', '--silent');
    const found = await unpacked(path.join(directory, 'shop-1.0.0.tgz'));
    expect(readdirSync(path.join(found, 'package')).sort()).toEqual(['package.json', 'server.js']);
  });

  test('long names and names that are not ASCII, of GNU and pax', async () => {
    const directory = fresh();
    const long = `${'d'.repeat(90)}/${'e'.repeat(90)}/${'f'.repeat(200)}`;
    writeSite(directory, { [long]: 'long', 'größe/日本.txt': 'wide' });
    for (const format of ['gnu', 'posix']) {
      const file = out();
      run(directory, 'tar', `--format=${format}`, '-czf', file, '.');
      const found = await unpacked(file);
      expect(readFileSync(path.join(found, long), 'utf8')).toBe('long');
      expect(readFileSync(path.join(found, 'größe/日本.txt'), 'utf8')).toBe('wide');
    }
  });

  test('hard links of tar are the same file', async () => {
    const directory = writeSite(fresh());
    run(directory, 'ln', 'index.html', 'again.html');
    const file = out();
    run(directory, 'tar', '-czf', file, '.');
    const found = await unpacked(file);
    expect(readFileSync(path.join(found, 'again.html'), 'utf8')).toBe(SITE['index.html']);
  });

  test('what macOS and Git add is left out, and a file with such a name is not', async () => {
    const apple = Buffer.concat([Buffer.from([0, 5, 22, 7]), randomBytes(100)]);
    const archive = await tarOf(
      { name: './._index.html', body: apple },
      { name: './index.html', body: 'x' },
      { name: './._theme', body: 'mine' },
      { name: '__MACOSX/a', body: 'x' },
      { name: '.git/config', body: 'token' },
      { name: 'sub/.git', body: 'gitdir: ../.git/modules/sub' },
    );
    const file = out();
    writeFileSync(file, archive);
    expect(readdirSync(await unpacked(file), { recursive: true }).sort()).toEqual(['._theme', 'index.html']);
  });

  python('a zip of Windows: backslashes are folders, and without permissions of Unix', async () => {
    const file = zipOf(
      out(),
      'i = zipfile.ZipInfo("x"); i.filename = "css\\\\site.css"; i.create_system = 0; z.writestr(i, "body{}")',
      'i = zipfile.ZipInfo("index.html"); i.create_system = 0; z.writestr(i, "hi")',
    );
    const found = await unpacked(file);
    expect(readFileSync(path.join(found, 'css/site.css'), 'utf8')).toBe('body{}');
    expect(statSync(path.join(found, 'index.html')).mode & 0o777).toBe(0o644);
  });

  python('zip64', async () => {
    const file = zipOf(out(), 'f = z.open(info("index.html"), "w", force_zip64=True); f.write(b"big"); f.close()');
    expect(readFileSync(path.join(await unpacked(file), 'index.html'), 'utf8')).toBe('big');
  });

  test('a tar with what was appended later has the newest', async () => {
    const file = out();
    writeFileSync(file, await tarOf({ name: 'a', body: 'old' }, { name: 'a', body: 'new' }));
    expect(readFileSync(path.join(await unpacked(file), 'a'), 'utf8')).toBe('new');
  });
});
