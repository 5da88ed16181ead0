/** @user any */
// Archives that are broken, or that somebody hostile sends: they write nothing outside of their directory, and say what
// is wrong with them.
import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { driverContext } from '../../../core/driver';
import { checkArchive, unpackSource } from '../../../drivers/source/archive/unpack';
import { run, tarOf, useFolder, writeSite, zipOf, type TarEntry } from '../../support/builds/archives';
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
const reasonOf = async (archive: string | Buffer, limits = LIMITS): Promise<string> => {
  const file = typeof archive === 'string' ? archive : path.join(fresh(), 'archive');
  if (typeof archive !== 'string') writeFileSync(file, archive);
  const checked = await checkArchive(file, limits, driverContext(60_000)).catch((error: Error) => error);
  const directory = fresh();
  const written = await unpackSource(file, directory, limits, driverContext(60_000)).catch((error: Error) => error);
  expect(written).toBeInstanceOf(Error);
  expect((checked as Error).message).toBe((written as Error).message);
  expect((checked as Error).name).toBe('SourceError');
  return (checked as Error).message;
};

const { test: python } = needs('python3');

describe('refused, whatever gzip makes of it', () => {
  test('paths that are long together', async () => {
    const deep = (n: number): string => Array.from({ length: 250 }, (_, depth) => `${n}x${depth}`).join('/');
    const archive = await tarOf(...Array.from({ length: 350 }, (_, n): TarEntry => ({ name: deep(n), body: '' })));
    expect(archive.length).toBeLessThan(2 ** 20);
    const file = path.join(fresh(), 'archive');
    writeFileSync(file, archive);
    const message = 'The paths of the archive are longer than 64 MB together.';
    await expect(checkArchive(file, LIMITS, driverContext(60_000))).rejects.toThrow(message);
  });

  test('empty blocks without end', async () => {
    const zeros = gzipSync(Buffer.alloc(110 * 2 ** 20));
    expect(zeros.length).toBeLessThan(2 ** 18);
    expect(await reasonOf(zeros)).toBe('The archive is larger than 104 MB when it is unpacked.');
  });

  test('a folder of many levels is looked at once for its files', async () => {
    const folders = Array.from({ length: 250 }, (_, depth) => `x${depth}`).join('/');
    const archive = await tarOf(...Array.from({ length: 300 }, (_, n) => ({ name: `${folders}/${n}`, body: '' })));
    const file = path.join(fresh(), 'archive');
    writeFileSync(file, archive);
    expect(await checkArchive(file, LIMITS, driverContext(60_000))).toMatchObject({ files: 300, folder: 'x0' });
  });
});

describe('refused', () => {
  const file: TarEntry = { name: 'index.html', body: 'x' };

  test.each<[string, TarEntry[], RegExp]>([
    ['a path that leads out', [{ name: '../out', body: 'x' }], /`\.\.\/out`, which leads out/],
    ['a path that leads out later', [{ name: 'a/../../out', body: 'x' }], /leads out/],
    ['an absolute path', [{ name: '/etc/cron.d/x', body: 'x' }], /absolute path `\/etc\/cron.d\/x`/],
    [
      'a file through a link',
      [
        { name: 'l', type: 'symlink', linkname: '/tmp' },
        { name: 'l/platform-escape', body: 'x' },
      ],
      /below `l`, which is a link/,
    ],
    [
      'a file below a file',
      [
        { name: 'f', body: 'x' },
        { name: 'f/x', body: 'x' },
      ],
      /below `f`, which is a file/,
    ],
    ['a hard link out of it', [{ name: 'h', type: 'link', linkname: '/etc/passwd' }], /absolute path `\/etc\/passwd`/],
    ['a hard link to nothing', [{ name: 'h', type: 'link', linkname: 'none' }], /not an earlier file/],
    [
      'a hard link to a link',
      [
        { name: 'l', type: 'symlink', linkname: '/etc/passwd' },
        { name: 'l2/h', type: 'link', linkname: 'l2' },
      ],
      /not an earlier file/,
    ],
    ['a device', [{ name: 'dev', type: 'character-device' }], /a device: `dev`/],
    ['a pipe', [{ name: 'p', type: 'fifo' }], /a named pipe: `p`/],
    ['a name that is too long', [{ name: 'n'.repeat(300), body: 'x' }], /too long/],
    ['no files', [{ name: 'empty/', type: 'directory' }], /contains no files/],
  ])('%s', async (_, entries, reason) => {
    expect(await reasonOf(await tarOf(...entries))).toMatch(reason);
    expect(existsSync('/tmp/platform-escape') || existsSync(path.join(folder.path, 'out'))).toBe(false);
  });

  test('a link stays a link, wherever it leads, and nothing is written through it', async () => {
    const archive = path.join(fresh(), 'a');
    writeFileSync(archive, await tarOf({ name: 'l', type: 'symlink', linkname: '/etc' }, file));
    const found = await unpacked(archive);
    expect(lstatSync(path.join(found, 'l')).isSymbolicLink()).toBe(true);
  });

  python.each([
    ['zip with a path that leads out', 'z.writestr("../out", "x")', /leads out/],
    [
      'zip with backslashes that lead out',
      'i = zipfile.ZipInfo("x"); i.filename = "..\\\\out"; z.writestr(i, "x")',
      /leads out/,
    ],
    ['zip with an absolute path', 'z.writestr("/etc/x", "x")', /absolute path/],
    ['zip with a drive', 'i = zipfile.ZipInfo("x"); i.filename = "C:\\\\x"; z.writestr(i, "x")', /absolute path/],
    ['zip with a name twice', 'z.writestr("a", "1"); z.writestr("a", "2")', /`a` more than once/],
    ['zip with a file through a link', 'z.writestr(info("l", 0o120777), "/tmp"); z.writestr("l/x", "x")', /below `l`/],
    ['zip with a device', 'z.writestr(info("d", 0o020644), "")', /a device or a pipe/],
    ['zip with a link of 1 MB', 'z.writestr(info("l", 0o120777), "a" * 2**20)', /too long/],
    ['zip with another method', 'z.writestr("a", "x" * 99, compress_type=zipfile.ZIP_LZMA)', /other than deflate/],
    ['zip with nothing', 'pass', /contains no files/],
  ])('a %s', async (_, line, reason) => {
    expect(await reasonOf(zipOf(path.join(fresh(), 'z'), line))).toMatch(reason);
  });

  needs('zip').test('an encrypted zip', async () => {
    const directory = writeSite(fresh());
    run(directory, 'zip', '-q', '-P', 'secret', 'z.zip', 'index.html');
    expect(await reasonOf(path.join(directory, 'z.zip'))).toMatch(/encrypted/);
  });

  python('bombs: what they say and what they are', async () => {
    const limits = { bytes: 2 ** 20, files: 100 };
    const zeros = Buffer.alloc(8 * 2 ** 20);
    expect(await reasonOf(await tarOf({ name: 'a', body: zeros }), limits)).toMatch(/larger than 1 MB/);
    const zip = zipOf(path.join(fresh(), 'z'), 'z.writestr("a", b"0" * 2**23)');
    expect(await reasonOf(zip, limits)).toMatch(/larger than 1 MB/);
    // The directory of the zip says that the file has 5 bytes.
    const lying = readFileSync(zip);
    lying.writeUInt32LE(5, lying.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1')) + 24);
    expect(await reasonOf(lying, limits)).toMatch(/damaged/);
    const many = Array.from({ length: 101 }, (_, i) => ({ name: `f${i}`, body: '' }));
    expect(await reasonOf(await tarOf(...many), limits)).toMatch(/more than 100 entries/);
  });

  test('a header that would not fit in memory', async () => {
    const archive = await tarOf({ name: 'a', body: 'x' });
    const tar = gunzipSync(archive);
    const header = Buffer.from(tar.subarray(0, 512));
    header.write('x', 156);
    header.write('77777777777', 124);
    header.fill(' ', 148, 156);
    header.write(
      `${header
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, '0')}\0 `,
      148,
    );
    expect(await reasonOf(gzipSync(Buffer.concat([header, Buffer.alloc(2 ** 20)])))).toMatch(/not a valid tar/);
  });

  python('damaged ones, each with what is wrong', async () => {
    const tar = await tarOf({ name: 'a', body: randomBytes(200_000) });
    expect(await reasonOf(tar.subarray(0, 100_000))).toMatch(/incomplete/);
    const flipped = Buffer.from(tar);
    flipped.fill(0xff, 50_000, 50_100);
    expect(await reasonOf(flipped)).toMatch(/damaged|incomplete/);
    const zip = readFileSync(zipOf(path.join(fresh(), 'z'), 'z.writestr("a", "hello" * 1000)'));
    expect(await reasonOf(zip.subarray(0, -30))).toMatch(/directory at its end is missing/);
    const wrong = Buffer.from(zip);
    wrong.writeUInt32LE(1, wrong.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1')) + 16);
    expect(await reasonOf(wrong)).toMatch(/CRC differs/);
    expect(await reasonOf(Buffer.alloc(0))).toMatch(/empty/);
    expect(await reasonOf(gzipSync('no tar at all'.repeat(100)))).toMatch(/not a valid tar/);
    expect(await reasonOf(Buffer.from('<html>'))).toMatch(/no archive/);
  });

  test('other formats are named', async () => {
    const site = writeSite(fresh());
    run(site, 'tar', '-cf', 'a.tar', 'index.html');
    run(site, 'tar', '-cJf', 'a.xz', 'index.html');
    run(site, 'tar', '-cjf', 'a.bz2', 'index.html');
    expect(await reasonOf(path.join(site, 'a.tar'))).toMatch(/without compression/);
    expect(await reasonOf(path.join(site, 'a.xz'))).toMatch(/an xz file/);
    expect(await reasonOf(path.join(site, 'a.bz2'))).toMatch(/a bzip2 file/);
  });

  test('a sparse file of GNU tar', async () => {
    const site = writeSite(fresh());
    run(site, 'truncate', '-s', '1M', 'sparse');
    for (const format of ['gnu', 'posix']) {
      run(site, 'tar', `--format=${format}`, '--sparse', '-czf', `${format}.tgz`, 'sparse', 'index.html');
      expect(await reasonOf(path.join(site, `${format}.tgz`))).toMatch(/sparse|unknown type/);
    }
  });

  python('random bytes after a good beginning never do more than fail', async () => {
    const good = [
      await tarOf(file, { name: 'b', body: randomBytes(5_000) }),
      readFileSync(zipOf(path.join(fresh(), 'z'), 'z.writestr("a", "x" * 500); z.writestr("b/c", "y")')),
    ];
    for (let turn = 0; turn < 200; turn += 1) {
      const bytes = Buffer.from(good[turn % 2] as Buffer);
      for (let hit = 0; hit < 4; hit += 1)
        bytes[2 + Math.floor(Math.random() * (bytes.length - 2))] = Math.floor(Math.random() * 256);
      const archive = path.join(folder.path, 'fuzz');
      writeFileSync(archive, bytes);
      const result = await checkArchive(archive, LIMITS, driverContext(60_000)).catch((error: Error) => error);
      if (result instanceof Error) expect([result.name, result.message]).toEqual(['SourceError', expect.any(String)]);
    }
  });
});
