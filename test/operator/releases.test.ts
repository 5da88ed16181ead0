// The index of releases, as tools/release signs it, and what a server may do with it and with archives.
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fetchReleaseArchive, fetchReleaseIndex, type ReleaseSource } from '../../core/releases/fetch_release';
import { newestRelease, parseReleaseIndex, type Release } from '../../core/releases/release_index';
import { freePort } from '../support/processes/free_port';
import { ROOT } from '../support/runner/repository';

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const KEY = publicKey.export({ type: 'spki', format: 'pem' }).toString();
const HOUR_MS = 3_600_000;

let folder: string;
let server: Server | undefined;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'releases-'));
  writeFileSync(path.join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
});
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)));
  server = undefined;
});
afterAll(() => rmSync(folder, { recursive: true }));

const release = (version: string, over: Partial<Release> = {}): Release => ({
  ...{ version, released_at: '2026-11-28T00:00:00.000Z', upgrades_from: null, security: null, changes: '- More' },
  archives: { x64: { name: `platform-${version}-linux-x64.tar.gz`, size: 10, sha256: 'a'.repeat(64) } },
  ...over,
});

/** As `npm run release` writes it: one call for each release. */
function indexOf(...releases: Release[]): string {
  rmSync(path.join(folder, 'releases.json'), { force: true });
  const script = `import { writeIndex } from ${JSON.stringify(path.join(ROOT, 'tools/release/release_index.mjs'))};
    const [folder, key, releases] = process.argv.slice(1);
    for (const one of JSON.parse(releases)) writeIndex(folder, key, one);`;
  const words = ['--input-type=module', '-e', script, folder, path.join(folder, 'key.pem'), JSON.stringify(releases)];
  execFileSync(process.execPath, words);
  return readFileSync(path.join(folder, 'releases.json'), 'utf8');
}

async function serve(handler: RequestListener): Promise<ReleaseSource> {
  server = createServer(handler);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/r`, key: KEY, version: '1.0.0', resolvers: [] };
}

test('an index is what its maker has signed, and each release is in it once', async () => {
  const text = indexOf(release('1.1.0'), release('1.2.0'), release('1.1.0', { security: 'A hole is closed.' }));
  const seen: string[] = [];
  const source = await serve(
    (request, response) => (seen.push(String(request.headers['user-agent'])), response.end(text)),
  );
  const { releases } = await fetchReleaseIndex(source);
  expect(releases.map(({ version, security }) => [version, security])).toEqual([
    ['1.2.0', null],
    ['1.1.0', 'A hole is closed.'],
  ]);
  expect(seen).toEqual(['platform/1.0.0']);
});

test('the newest release is one for this machine, to which this version may go', () => {
  const index = parseReleaseIndex(
    indexOf(
      release('1.0.0'),
      release('1.1.0'),
      release('1.2.0', { archives: {} }),
      release('2.0.0', { upgrades_from: '1.1.0' }),
      release('3.0.0-rc.1'),
    ),
    KEY,
  );
  expect(newestRelease(index, 'x64', '1.0.0')?.version).toBe('1.1.0');
  expect(newestRelease(index, 'x64', '1.1.0')?.version).toBe('2.0.0');
  expect(newestRelease(index, 'x64', '3.0.0-rc.0')?.version).toBe('3.0.0-rc.1');
  expect(newestRelease(index, 'arm64', '1.0.0')).toBeNull();
});

test('another key, a changed byte, an old copy and nonsense are refused', () => {
  const text = indexOf(release('1.1.0'));
  const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' });
  const wrong = /wrong signature: it is not from whoever made this release/;
  expect(() => parseReleaseIndex(text, other)).toThrow(wrong);
  expect(() => parseReleaseIndex(text.replace('1.1.0', '1.1.1'), KEY)).toThrow(wrong);
  expect(() => parseReleaseIndex(text.replace(/"signature":"../, '"signature":"AA'), KEY)).toThrow(wrong);
  expect(() => parseReleaseIndex(text, KEY, new Date(Date.now() + 181 * 24 * HOUR_MS))).toThrow(
    /expired on .*, or the clock is wrong/,
  );
  for (const key of ['', 'nonsense', rsa.toString()])
    expect(() => parseReleaseIndex(text, key)).toThrow('is not an Ed25519 public key');
  for (const nonsense of ['', '<html>', 'null', '[]', '{}', '{"signed":1,"signature":"a"}'])
    expect(() => parseReleaseIndex(nonsense, KEY)).toThrow('The index of releases is malformed.');
});

test.each([
  ['../../etc/passwd', 10],
  ['a b', 10],
  ['fine.tar.gz', 0],
  ['fine.tar.gz', 1e300],
])('a signed archive %s of %d bytes is malformed all the same', (name, size) => {
  const text = indexOf(release('1.1.0', { archives: { x64: { name, size, sha256: 'a'.repeat(64) } } }));
  expect(() => parseReleaseIndex(text, KEY)).toThrow('malformed');
});

test.each([
  ['a name of this machine', 'https://localhost/releases.json', /redirects to localhost, whose address is not public/],
  [
    'an address of the cloud',
    'https://169.254.169.254/latest',
    /redirects to 169\.254\.169\.254, whose address is not/,
  ],
  ['a private network', 'https://[fd00::1]/x', /whose address is not public/],
  ['plain HTTP elsewhere', 'http://192.0.2.1/releases.json', /redirects releases\.json to where nobody should be led/],
  ['a file', 'file:///etc/passwd', /to where nobody should be led/],
  ['itself, for ever', '/r/releases.json', /to where nobody should be led/],
])('a redirect to %s is not followed', async (_, location, sentence) => {
  const source = await serve((_request, response) => response.writeHead(302, { location }).end());
  await expect(fetchReleaseIndex(source)).rejects.toThrow(sentence);
});

test('a redirect on the same host is', async () => {
  const text = indexOf(release('1.1.0'));
  const source = await serve((request, response) =>
    request.url === '/r/releases.json' ? response.writeHead(301, { location: '/moved' }).end() : response.end(text),
  );
  expect((await fetchReleaseIndex(source)).releases).toHaveLength(1);
});

test('a server that is away, answers something else or sends for ever is given up with a sentence', async () => {
  const away = { ...(await serve((_, response) => response.end())), url: `http://127.0.0.1:${await freePort()}/r` };
  await expect(fetchReleaseIndex(away)).rejects.toThrow('RELEASES_URL cannot be reached: ECONNREFUSED.');
  const source = await serve((request, response) => {
    if (request.url?.endsWith('missing')) return void response.writeHead(404).end('nothing');
    const write = (): void =>
      void (response.write('x'.repeat(65_536)) ? setImmediate(write) : response.once('drain', write));
    write();
  });
  await expect(fetchReleaseIndex(source)).rejects.toThrow('sends more than the 1048576 bytes of releases.json.');
  const read = async (name: string): Promise<void> => {
    for await (const chunk of fetchReleaseArchive(source, name, 100_000)) void chunk;
  };
  await expect(read('archive')).rejects.toThrow('sends more than the 100000 bytes of archive.');
  await expect(read('missing')).rejects.toThrow('RELEASES_URL answers 404 for missing.');
});
