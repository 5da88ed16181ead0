// Layers of release images: the same files are the same bytes, and nothing that is not of the release gets into one.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  closeSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { treeEntries } from '../../../drivers/release_image/file_tree';
import { writeLayer, type Layer } from '../../../drivers/release_image/layer';
import type { TarEntry } from '../../../drivers/release_image/tar_entry';
import { needs } from '../../support/runner/programs';

let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'release-layers-'));
});

afterEach(() => {
  execFileSync('chmod', ['-R', 'u+rwX', root]);
  rmSync(root, { recursive: true, force: true });
});

type Make = (at: (name: string) => string) => void;

function folder(name: string, makes: Make[]): string {
  const place = path.join(root, name);
  mkdirSync(place);
  for (const make of makes) make((file) => path.join(place, file));
  return place;
}

async function layerOf(directory: string, moved: { from: string; to: string } | null = null): Promise<Layer> {
  const entries = treeEntries(directory, { at: 'app', owner: 10_001, moved });
  return writeLayer(path.join(root, 'layer.tar.gz'), entries, driverContext(60_000));
}

/** As GNU tar lists the layer that was written last: type and permissions, owner, size, time, name. */
function listed(): string[] {
  const words = ['--numeric-owner', '--utc', '--quoting-style=escape', '-tvzf', path.join(root, 'layer.tar.gz')];
  return execFileSync('tar', words, { encoding: 'utf8' }).trim().split('\n');
}

/** What Python, another reader, finds: names as bytes in hexadecimal. */
function readByPython(): { name: string; type: string; link: string; size: number; mode: number }[] {
  const program = [
    'import tarfile, json, sys, os',
    `t = tarfile.open(sys.argv[1], errors='surrogateescape')`,
    `print(json.dumps([{'name': os.fsencode(m.name).hex(), 'type': m.type.decode(), 'mode': m.mode, 'size': m.size,`,
    `  'link': os.fsencode(m.linkname).hex()} for m in t]))`,
  ].join('\n');
  return JSON.parse(execFileSync('python3', ['-c', program, path.join(root, 'layer.tar.gz')], { encoding: 'utf8' }));
}

const { test: withPython } = needs('python3');
const hex = (name: string | Buffer): string => Buffer.from(name).toString('hex');

const plain: Make[] = [
  (at) => writeFileSync(at('server.js'), 'listen()'),
  (at) => writeFileSync(at('start'), '#!/bin/sh\n', { mode: 0o755 }),
  (at) => mkdirSync(at('empty'), { mode: 0o755 }),
  (at) => symlinkSync('server.js', at('index.js')),
  (at) => {
    mkdirSync(at('lib'), { mode: 0o755 });
    writeFileSync(at('lib/one.js'), '1', { mode: 0o644 });
    linkSync(at('lib/one.js'), at('lib/two.js'));
  },
];

test('the same files have one digest, in another directory, at another time and made in another order', async () => {
  const first = await layerOf(folder('first', plain));
  await sleep(1100);
  const other = folder('a-longer-name', [...plain].reverse());
  for (const name of ['server.js', 'lib', 'empty']) utimesSync(path.join(other, name), new Date(1e12), new Date(1e12));
  const mask = process.umask(0o002);
  try {
    expect(await layerOf(other)).toEqual(first);
    expect(await layerOf(folder('third', plain))).toEqual(first);
  } finally {
    process.umask(mask);
  }
  expect(await layerOf(folder('fourth', plain.slice(1)))).not.toEqual(first);
});

test('files belong to one user, have no time, and hard links stay links', async () => {
  await layerOf(folder('files', plain));
  expect(listed()).toEqual([
    'drwxr-xr-x 10001/10001       0 1970-01-01 00:00 app/',
    'drwxr-xr-x 10001/10001       0 1970-01-01 00:00 app/empty/',
    'lrwxrwxrwx 10001/10001       0 1970-01-01 00:00 app/index.js -> server.js',
    'drwxr-xr-x 10001/10001       0 1970-01-01 00:00 app/lib/',
    '-rw-r--r-- 10001/10001       1 1970-01-01 00:00 app/lib/one.js',
    'hrw-r--r-- 10001/10001       0 1970-01-01 00:00 app/lib/two.js link to app/lib/one.js',
    '-rw-r--r-- 10001/10001       8 1970-01-01 00:00 app/server.js',
    '-rwxr-xr-x 10001/10001      10 1970-01-01 00:00 app/start',
  ]);
});

withPython('names of any bytes and of any length are kept, as two readers of others find them', async () => {
  const deep = Array.from({ length: 6 }, (_, i) => `directory-${i}-${'x'.repeat(40)}`).join('/');
  const odd = [
    Buffer.from([0x66, 0xff, 0xfe]),
    Buffer.from('two\nlines'),
    Buffer.from('späte Größe'),
    Buffer.from('-rf *'),
  ];
  const long = Buffer.concat([Buffer.alloc(120, 'y'), Buffer.from([0xe9])]);
  const directory = folder('odd', [
    (at) => mkdirSync(at(deep), { recursive: true }),
    (at) => writeFileSync(at(`${deep}/file`), 'deep'),
    (at) => symlinkSync(`${deep}/file`, at('link')),
  ]);
  for (const name of [...odd, long]) writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), name]), 'odd');
  await layerOf(directory);
  const found = readByPython();
  const names = found.map(({ name }) => name);
  for (const name of [...odd, long]) expect(names).toContain(hex(Buffer.concat([Buffer.from('app/'), name])));
  expect(names).toContain(hex(`app/${deep}/file`));
  expect(found.find(({ name }) => name === hex('app/link'))?.link).toBe(hex(`${deep}/file`));
  const extracted = folder('extracted', []);
  execFileSync('tar', ['-xzf', path.join(root, 'layer.tar.gz'), '-C', extracted]);
  expect(() => execFileSync('diff', ['-r', '--no-dereference', directory, path.join(extracted, 'app')])).not.toThrow();
});

withPython(
  'sockets, pipes, set-user-id bits and compiled Python stay behind, and files of mode 0000 are read',
  async () => {
    const directory = folder('special', [
      (at) => writeFileSync(at('secret'), 'locked', { mode: 0o644 }),
      (at) => chmodSync(at('secret'), 0),
      (at) => mkdirSync(at('locked')),
      (at) => writeFileSync(at('locked/inner'), 'in'),
      (at) => chmodSync(at('locked'), 0),
      (at) => writeFileSync(at('sudo'), 'x'),
      (at) => chmodSync(at('sudo'), 0o4755),
      (at) => void execFileSync('mkfifo', [at('pipe')]),
      (at) => mkdirSync(at('__pycache__')),
      (at) => writeFileSync(at('__pycache__/a.cpython-312.pyc'), 'x'),
      (at) => closeSync(openSync(at('sparse'), 'w')),
      (at) => truncateSync(at('sparse'), 50_000_000),
    ]);
    const server = createServer().listen(path.join(directory, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    try {
      const { size } = await layerOf(directory);
      expect(size).toBeLessThan(500_000);
      const found = Object.fromEntries(readByPython().map((one) => [Buffer.from(one.name, 'hex').toString(), one]));
      expect(Object.keys(found).sort()).toEqual([
        ...['app', 'app/locked', 'app/locked/inner', 'app/secret', 'app/sparse', 'app/sudo'],
      ]);
      expect(statSync(path.join(directory, 'locked')).mode & 0o777).toBe(0);
      expect([found['app/secret'], found['app/sudo']]).toMatchObject([
        { mode: 0, size: 6 },
        { mode: 0o755, size: 1 },
      ]);
      expect(found['app/sparse']).toMatchObject({ size: 50_000_000 });
    } finally {
      server.close();
    }
  },
);

test('links that lead out of the release are links, and what they lead to is not read', async () => {
  const outside = folder('outside', [(at) => writeFileSync(at('password'), 'of the host')]);
  await layerOf(
    folder('leading-out', [
      (at) => symlinkSync(path.join(outside, 'password'), at('file')),
      (at) => symlinkSync(outside, at('folder')),
    ]),
  );
  expect(listed()).toEqual([
    expect.stringMatching(/ app\/$/),
    `lrwxrwxrwx 10001/10001       0 1970-01-01 00:00 app/file -> ${outside}/password`,
    `lrwxrwxrwx 10001/10001       0 1970-01-01 00:00 app/folder -> ${outside}`,
  ]);
});

test('a directory that a program replaces by a link meanwhile leads nowhere', async () => {
  const outside = folder('of-the-host', [(at) => writeFileSync(at('inner'), 'of the host')]);
  const directory = folder('racing', [
    (at) => mkdirSync(at('a')),
    (at) => writeFileSync(at('a/inner'), 'of the release'),
  ]);
  const texts: string[] = [];
  for await (const entry of treeEntries(directory, { at: 'app', owner: 0, moved: null })) {
    if (entry.name.toString() === 'app/a/inner') {
      renameSync(path.join(directory, 'a'), path.join(directory, 'b'));
      symlinkSync(outside, path.join(directory, 'a'));
      texts.push(await textOf(entry));
    }
  }
  expect(texts).toEqual(['of the release']);
});

test('a file that grows or shrinks meanwhile ends the work, which is tried again', async () => {
  const directory = folder('shrinking', [(at) => writeFileSync(at('log'), 'x'.repeat(1000))]);
  const reading = async (): Promise<void> => {
    for await (const entry of treeEntries(directory, { at: 'app', owner: 0, moved: null })) {
      if (entry.type === 'file') truncateSync(path.join(directory, 'log'), 10);
      await textOf(entry);
    }
  };
  await expect(reading()).rejects.toMatchObject({ reason: 'transient' });
});

test('what names the programs of this host names those of the image', async () => {
  const tools = path.join(root, 'toolchains');
  const directory = folder('moved', [
    (at) => mkdirSync(at('.platform/venv/bin'), { recursive: true }),
    (at) => writeFileSync(at('.platform/profile'), `PATH="${tools}/node-24.1.0/bin:$PATH"; export PATH\n`),
    (at) => writeFileSync(at('.platform/venv/pyvenv.cfg'), `home = ${tools}/python-3.14.0/bin\n`),
    (at) => symlinkSync(`${tools}/python-3.14.0/bin/python3`, at('.platform/venv/bin/python')),
    (at) => writeFileSync(at('notes'), `${tools}/node-24.1.0`),
  ]);
  await layerOf(directory, { from: tools, to: '/platform/tools' });
  const extracted = folder('extracted', []);
  execFileSync('tar', ['-xzf', path.join(root, 'layer.tar.gz'), '-C', extracted]);
  const text = (name: string): string => readFileSync(path.join(extracted, 'app', name), 'utf8');
  expect(text('.platform/profile')).toBe('PATH="/platform/tools/node-24.1.0/bin:$PATH"; export PATH\n');
  expect(text('.platform/venv/pyvenv.cfg')).toBe('home = /platform/tools/python-3.14.0/bin\n');
  expect(text('notes')).toBe(`${tools}/node-24.1.0`);
  expect(listed().join('\n')).toContain('python -> /platform/tools/python-3.14.0/bin/python3');
});

async function textOf(entry: TarEntry): Promise<string> {
  let text = '';
  for await (const chunk of entry.content?.() ?? []) text += chunk.toString();
  return text;
}
