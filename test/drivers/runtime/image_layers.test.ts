// Layers of images: what they may do to the root that they make, and what they may not do to the host.
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { parseConfiguration } from '../../../drivers/image/config';
import { settleUser } from '../../../drivers/image/accounts';
import { addLayer, findLayer, pruneLayers, type StoredLayer } from '../../../drivers/image/layer_store';
import { buildRoot, completeRoot } from '../../../drivers/image/root';
import type { Room } from '../../../drivers/image/unpack';
import { limits } from '../../../core/limits';
import { sha256, tarOf, type Entry } from '../../support/builds/images';

const TAR = 'application/vnd.oci.image.layer.v1.tar';
let directory: string;
let store: string;
let root: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'layers-'));
  store = path.join(directory, 'store');
  root = path.join(directory, 'root');
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

const room = (): Room => ({ files: limits.imageFilesMax, bytes: limits.imageBytesMax });

async function add(content: Buffer, mediaType = TAR, digest = sha256(content), free = room()): Promise<StoredLayer> {
  const file = path.join(directory, 'layer');
  writeFileSync(file, mediaType.endsWith('gzip') ? gzipSync(content) : content);
  await addLayer(store, { digest, file, mediaType }, free, null);
  return (await findLayer(store, digest, null)) as StoredLayer;
}

async function rootOf(...layers: Entry[][]): Promise<void> {
  const stored = [];
  for (const entries of layers) stored.push(await add(await tarOf(entries)));
  await buildRoot(root, stored, null);
}

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

describe('layers over layers', () => {
  test('a higher layer replaces, hides and opens what a lower one has', async () => {
    await rootOf(
      [
        { name: './a/one', content: '1' },
        { name: 'a/two', content: '2' },
        { name: 'b/old', content: 'old' },
        { name: 'c/kept', content: 'kept' },
        { name: 'd', content: 'a file' },
        { name: 'e/deep/file', content: 'gone' },
      ],
      [
        { name: 'a/.wh.one', content: '' },
        { name: 'b/.wh..wh..opq', content: '' },
        { name: 'b/new', content: 'new' },
        { name: 'c/kept', content: 'changed' },
        { name: 'd/inside', content: 'a directory now' },
        { name: '.wh.e', content: '' },
        { name: 'f', type: 'link', linkname: 'a/two' },
      ],
    );
    expect(readdirSync(path.join(root, 'a'))).toEqual(['two']);
    expect(readdirSync(path.join(root, 'b'))).toEqual(['new']);
    expect([read('c/kept'), read('d/inside'), read('f')]).toEqual(['changed', 'a directory now', '2']);
    expect(existsSync(path.join(root, 'e'))).toBe(false);
  });

  test('a lower layer stays as it was, for other images that have it', async () => {
    const lower = await add(await tarOf([{ name: 'a/one', content: '1' }]));
    const upper = await add(await tarOf([{ name: 'a/one', content: 'other' }]));
    await buildRoot(root, [lower, upper], null);
    expect(readFileSync(path.join(lower.files, 'a/one'), 'utf8')).toBe('1');
    await pruneLayers(store, new Set());
    expect([readdirSync(store), read('a/one')]).toEqual([[], 'other']);
  });

  test('permissions are kept but for set-user-id; devices and pipes are left out', async () => {
    await rootOf([
      { name: 'bin/tool', mode: 0o6755, content: 'tool' },
      { name: 'secret', mode: 0o040, content: 's' },
      { name: 'dir/', type: 'directory', mode: 0o1777 },
      { name: 'dev/mem', type: 'character-device', devmajor: 1, devminor: 1 },
      { name: 'dev/sda', type: 'block-device', devmajor: 8, devminor: 0 },
      { name: 'pipe', type: 'fifo' },
    ]);
    const mode = (name: string): number => lstatSync(path.join(root, name)).mode & 0o7777;
    expect([mode('bin/tool'), mode('secret'), mode('dir')]).toEqual([0o755, 0o640, 0o777]);
    expect(existsSync(path.join(root, 'dev')) || existsSync(path.join(root, 'pipe'))).toBe(false);
  });
});

(process.getuid?.() === 0 ? describe : describe.skip)('layers with users', () => {
  const range = { root: { uid: 700_001, gid: 700_002 }, first: 2_140_000_000 };
  const addOwned = async (content: Buffer): Promise<StoredLayer> => {
    const file = path.join(directory, 'layer');
    writeFileSync(file, content);
    await addLayer(store, { digest: sha256(content), file, mediaType: TAR }, room(), range);
    return (await findLayer(store, sha256(content), range)) as StoredLayer;
  };
  const show = (name: string): number[] => {
    const { uid, gid, mode } = lstatSync(path.join(root, name));
    return [uid, gid, mode & 0o7777];
  };

  test('files, links and directories have their owners within the range, and their whole permissions', async () => {
    const ids = (uid: number, gid: number): object => ({ uid, gid });
    const lower = await tarOf([
      { name: 'd/', type: 'directory', mode: 0o1777, ...ids(5, 0) },
      { name: 'd/f', mode: 0o4400, content: 'x', ...ids(0, 65_535) },
      { name: 'link', type: 'symlink', linkname: 'd/f', ...ids(1, 1) },
      { name: 'beyond', content: 'x', ...ids(1_000_650_000, 70_000) },
    ]);
    const upper = await tarOf([
      { name: 'd/', type: 'directory', mode: 0o2750, ...ids(6, 7) },
      { name: 'implied/file', content: 'x', ...ids(9, 9) },
    ]);
    await buildRoot(root, [await addOwned(lower), await addOwned(upper)], range);
    await completeRoot(root, '/made', range);
    const { first } = range;
    expect(show('d')).toEqual([first + 5, first + 6, 0o2750]);
    expect(show('d/f')).toEqual([700_001, first + 65_534, 0o400]);
    expect(show('link').slice(0, 2)).toEqual([first, first]);
    expect(show('beyond').slice(0, 2)).toEqual([first + 65_533, first + 65_533]);
    expect(show('implied/file').slice(0, 2)).toEqual([first + 8, first + 8]);
    for (const name of ['implied', 'made', 'etc/hosts', 'tmp'])
      expect(show(name).slice(0, 2)).toEqual([700_001, 700_002]);
  });

  test('layers that were unpacked for other ids are not taken', async () => {
    const content = await tarOf([{ name: 'f', content: 'x', uid: 3, gid: 3 }]);
    const [digest] = [sha256(content), await addOwned(content)];
    expect(await findLayer(store, digest, null)).toBe(null);
    expect(await findLayer(store, digest, { ...range, first: range.first + 65_536 })).toBe(null);
    expect(await findLayer(store, digest, range)).not.toBe(null);
  });

  test('the user of USER has the further groups that the image gives it, and root stays root', async () => {
    const accounts = [
      { name: 'etc/passwd', content: 'root:x:0:0::/root:/bin/sh\napp:x:10:10::/home/app:/bin/sh\n' },
      { name: 'etc/group', content: 'app:x:10:\nextra:x:44:other,app\nbeyond:x:70000:app\n' },
    ];
    await buildRoot(root, [await addOwned(await tarOf(accounts))], range);
    const app = { name: 'app', uid: 10, gid: 10, home: '/home/app' };
    expect(await settleUser(root, 'app', range)).toEqual({ ...app, groups: [44] });
    expect(await settleUser(root, '10', range)).toEqual({ ...app, groups: [44] });
    expect(await settleUser(root, 'app:extra', range)).toEqual({ ...app, gid: 44 });
    expect(await settleUser(root, '', range)).toEqual({ name: 'root', uid: 0, gid: 0, home: '/root' });
    await expect(settleUser(root, '70000', range)).rejects.toMatchObject({ failure: 'broken' });
  });
});

describe('hostile layers', () => {
  test.each<[string, Entry[]]>([
    ['a name with ..', [{ name: '../outside', content: 'x' }]],
    ['a name with .. inside', [{ name: 'a/../../outside', content: 'x' }]],
    ['a hard link to a name with ..', [{ name: 'passwd', type: 'link', linkname: '../../../etc/passwd' }]],
    ['a hard link to nothing', [{ name: 'passwd', type: 'link', linkname: '/etc/passwd' }]],
    [
      'a hard link to a directory',
      [
        { name: 'd/f', content: 'x' },
        { name: 'l', type: 'link', linkname: 'd' },
      ],
    ],
    ['a name that is too long', [{ name: 'x'.repeat(300), content: 'x' }]],
    ['a tree that is too deep', [{ name: 'd/'.repeat(300) + 'f', content: 'x' }]],
  ])('%s is refused', async (_name, entries) => {
    await expect(rootOf(entries)).rejects.toMatchObject({ name: 'ImageError', failure: 'broken' });
    expect(readdirSync(store).filter((name) => name.startsWith('.'))).toEqual([]);
    expect(existsSync(path.join(directory, 'outside'))).toBe(false);
  });

  test('what is written through a link stays in the image', async () => {
    const outside = path.join(directory, 'outside');
    await rootOf(
      [
        { name: 'etc', type: 'symlink', linkname: directory },
        { name: 'up', type: 'symlink', linkname: '../../..' },
        { name: 'outside', type: 'symlink', linkname: outside },
      ],
      [
        { name: 'etc/outside', content: 'x' },
        { name: 'up/outside', content: 'x' },
        { name: 'outside', content: 'x' },
      ],
    );
    expect(existsSync(outside)).toBe(false);
    expect([read('etc/outside'), read('up/outside'), read('outside')]).toEqual(['x', 'x', 'x']);
  });

  test('links of one layer are not followed by what comes later in it', async () => {
    await rootOf([
      { name: 'out', type: 'symlink', linkname: directory },
      { name: 'out/planted', content: 'x' },
      { name: 'linked', type: 'link', linkname: 'out/planted' },
    ]);
    expect(existsSync(path.join(directory, 'planted'))).toBe(false);
  });

  test('a link to a file of the host in the place of /etc/passwd is neither read nor written', async () => {
    const victim = path.join(directory, 'victim');
    writeFileSync(victim, 'root:x:0:0::/:/bin/sh\nhost:x:4242:4242::/:/bin/sh\n');
    await rootOf([{ name: 'etc/passwd', type: 'symlink', linkname: victim }]);
    await completeRoot(root, '/srv', null);
    await expect(settleUser(root, 'host', null)).rejects.toMatchObject({ name: 'ImageError' });
    expect(await settleUser(root, '7', null)).toMatchObject({ uid: 7, gid: 0 });
    expect(readFileSync(victim, 'utf8')).not.toContain(':7:');
  });

  test('a layer that replaces /bin and /etc by links leaves them inside, and cyclic links end', async () => {
    await rootOf(
      [{ name: 'bin/sh', content: 'shell' }],
      [
        { name: 'bin', type: 'symlink', linkname: '/usr/bin' },
        { name: 'etc', type: 'symlink', linkname: directory },
        { name: 'srv', type: 'symlink', linkname: 'srv' },
      ],
    );
    expect(readlinkSync(path.join(root, 'bin'))).toBe('/usr/bin');
    await completeRoot(root, '/work', null);
    expect(lstatSync(path.join(root, 'etc')).isDirectory()).toBe(true);
    await expect(completeRoot(root, '/srv/www', null)).rejects.toMatchObject({ failure: 'broken' });
    expect(readdirSync(directory).sort()).toEqual(['layer', 'root', 'store']);
  });

  test('a bomb, too many files, and content of another digest are refused', async () => {
    const zeros = await tarOf([{ name: 'zeros', content: Buffer.alloc(4 << 20) }]);
    const small = { files: 10, bytes: 1 << 20 };
    const gzip = `${TAR}+gzip`;
    await expect(add(zeros, gzip, sha256(zeros), { ...small })).rejects.toThrow(/larger than/);
    const many = await tarOf(Array.from({ length: 11 }, (_, i) => ({ name: `f${i}`, content: '' })));
    await expect(add(many, TAR, sha256(many), { ...small })).rejects.toThrow(/more than .* files/);
    const other = `sha256:${'0'.repeat(64)}`;
    await expect(add(many, TAR, other)).rejects.toThrow(/not that of its digest/);
    await expect(add(many.subarray(0, 700), TAR)).rejects.toMatchObject({ failure: 'broken' });
    const junk = Buffer.alloc(5000, 'x');
    await expect(add(junk, TAR)).rejects.toMatchObject({ failure: 'broken' });
    expect(readdirSync(store)).toEqual([]);
  });
});

describe('configurations', () => {
  const settingsOf = (config: object): ReturnType<typeof parseConfiguration>['settings'] =>
    parseConfiguration(Buffer.from(JSON.stringify({ config, rootfs: { diff_ids: [] } })), 0).settings;
  const checkOf = (Healthcheck: object, more: object = {}): unknown =>
    settingsOf({ Healthcheck, ...more }).health_check;

  test('HEALTHCHECK has the defaults of Docker, whole seconds and the shell of the image', () => {
    expect(checkOf({ Test: ['CMD-SHELL', 'curl -f localhost'] })).toEqual({
      command: ['/bin/sh', '-c', 'curl -f localhost'],
      ...{ interval_seconds: 30, timeout_seconds: 30, start_period_seconds: 0, start_interval_seconds: 2, retries: 3 },
    });
    const times = { Interval: 1_500_000_000, Timeout: 1, StartPeriod: 7e9, StartInterval: 3e9, Retries: 9 };
    expect(checkOf({ Test: ['CMD', '/check', '-x'], ...times })).toEqual({
      command: ['/check', '-x'],
      ...{ interval_seconds: 2, timeout_seconds: 1, start_period_seconds: 7, start_interval_seconds: 3, retries: 9 },
    });
    expect(checkOf({ Test: ['CMD-SHELL', 'x'] }, { Shell: ['/bin/ash', '-ec'] })).toMatchObject({
      command: ['/bin/ash', '-ec', 'x'],
    });
    expect([checkOf({ Test: ['NONE'] }), checkOf({ Test: [] }), checkOf({})]).toEqual(['none', undefined, undefined]);
    for (const Test of [['CMD'], ['CMD-SHELL', 'a', 'b'], ['OTHER', 'x'], 'text', [1]])
      expect(() => checkOf({ Test })).toThrow(/HEALTHCHECK/);
  });

  test('EXPOSE counts where it names exactly one TCP port', () => {
    const exposed = (...ports: string[]): number | undefined =>
      settingsOf({ ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])) }).exposed_port;
    expect([exposed('80/tcp'), exposed('8080'), exposed('80/TCP', '53/udp')]).toEqual([80, 8080, 80]);
    expect([
      exposed(),
      exposed('80/tcp', '443/tcp'),
      exposed('53/udp'),
      exposed('0/tcp'),
      exposed('70000/tcp'),
    ]).toEqual(Array.from({ length: 5 }, () => undefined));
    for (const ExposedPorts of ['80', null, ['80/tcp'], 80])
      expect(settingsOf({ ExposedPorts })).not.toHaveProperty('exposed_port');
  });

  test('STOPSIGNAL is a name or a number', () => {
    const signalOf = (StopSignal: unknown): unknown => settingsOf({ StopSignal }).stop_signal;
    expect(['SIGQUIT', 'quit', '3', '15', '0', '99', 'SIGNOTHING', undefined].map(signalOf)).toEqual([
      ...['SIGQUIT', 'SIGQUIT', 'SIGQUIT', 'SIGTERM'],
      ...[null, null, null, null],
    ]);
  });
});
