/** @user any */
// The embedded cache of CDN zones: its files, its memory, and many who wait for the same.
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliDecompressSync } from 'node:zlib';
import { openEmbeddedCdn, type EmbeddedCdnOptions } from '../../../engines/cdn/cache/driver';
import { startCdnBench, testEdgeOptions, type CdnBench } from '../../support/cdn/cdn_bench';
import { visitTogether, visitWithoutReading } from '../../support/cdn/cdn_visitors';
import { startDnsServer } from '../../support/dns/dns_server';
import { waitFor } from '../../support/wait_for';

const MINUTE = { 'cache-control': 'max-age=60' };
const HIT = 'edge; hit';
const directory = mkdtempSync(path.join(tmpdir(), 'cdn-embedded-'));
const closers: (() => Promise<void> | void)[] = [];
let serial = 0;

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function newDirectory(): string {
  return path.join(directory, String((serial += 1)));
}

async function open(more: Partial<EmbeddedCdnOptions> = {}): Promise<CdnBench> {
  const limits = { bytesMax: 50_000_000, objectsMax: 10_000, memoryBytesMax: 5_000_000, objectBytesMax: 20_000_000 };
  const bench = await startCdnBench(() =>
    openEmbeddedCdn({ ...testEdgeOptions(), directory: newDirectory(), ...limits, ...more }),
  );
  closers.push(() => bench.close());
  return bench;
}

async function listen(handle: http.RequestListener): Promise<{ url: string; server: http.Server }> {
  const server = http.createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => void (server.closeAllConnections(), server.close()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

const stateOf = async (bench: CdnBench, host: string, target: string): Promise<unknown> =>
  (await bench.visit(host, target)).headers['cache-status'];

describe('many who wait for one new object', () => {
  test('2,000 cost one request to the origin, and one who reads nothing stops none of them', async () => {
    const bench = await open();
    const host = await bench.zone('crowd');
    const body = 'a text that repeats itself. '.repeat(20_000);
    bench.origin('/new', [{ headers: MINUTE, body, delayMs: 1_500 }]);
    const slow = await visitWithoutReading(bench.port, host, '/new');
    await waitFor('the request', async () => bench.asked('/new').length > 0);
    const crowd = { port: bench.port, host, target: '/new', connections: 500, requests: 4 };
    expect(await visitTogether({ ...crowd, codings: ['br', 'gzip', 'br', 'gzip'] })).toBe(2_000);
    expect(bench.asked('/new')).toHaveLength(1);
    slow.destroy();
  });

  test('those who read nothing take little memory', async () => {
    const bench = await open({ memoryBytesMax: 0 });
    const host = await bench.zone('stuck');
    bench.origin('/large', [{ headers: MINUTE, body: 'x'.repeat(10_000_000) }]);
    const before = process.memoryUsage().external;
    const stuck = await Promise.all(Array.from({ length: 100 }, () => visitWithoutReading(bench.port, host, '/large')));
    closers.push(() => stuck.forEach((socket) => socket.destroy()));
    expect((await bench.visit(host, '/large')).body).toHaveLength(10_000_000);
    await waitFor('the object', async () => (await stateOf(bench, host, '/large')) === HIT);
    // Of the billion that they have asked for.
    expect(process.memoryUsage().external - before).toBeLessThan(250_000_000);
    expect(bench.asked('/large')).toHaveLength(1);
  });

  test('a compressed form is made once, for those who wait for it and those who come later', async () => {
    const own = newDirectory();
    const bench = await open({ directory: own });
    const host = await bench.zone('forms');
    const body = 'another text that repeats itself. '.repeat(10_000);
    bench.origin('/text', [{ headers: MINUTE, body }]);
    for (const [coding, end] of [
      ['br', '.br'],
      ['gzip', '.gzip'],
    ] as const) {
      const ask = (): ReturnType<CdnBench['visit']> =>
        bench.visit(host, '/text', { headers: { 'accept-encoding': coding } });
      const together = await Promise.all(Array.from({ length: 20 }, ask));
      const stored = await waitFor('the form', async () => readdirSync(own).find((name) => name.endsWith(end)));
      const made = statSync(path.join(own, stored));
      const later = await ask();
      for (const { status, body: packed } of together) expect([status, packed]).toEqual([200, later.body]);
      expect([later.headers['content-encoding'], later.headers['content-length']]).toEqual([coding, String(made.size)]);
      expect(readFileSync(path.join(own, stored)).toString('latin1')).toBe(later.body);
      expect(readdirSync(own).filter((name) => name.endsWith(end))).toEqual([stored]);
      if (coding === 'br') expect(brotliDecompressSync(Buffer.from(later.body, 'latin1')).toString()).toBe(body);
    }
    expect(bench.asked('/text')).toHaveLength(1);
  });
});

describe('the files', () => {
  const filesIn = (own: string): string[] => readdirSync(own).filter((name) => !name.startsWith('index'));
  const bytesIn = (own: string): number =>
    filesIn(own).reduce((sum, name) => sum + statSync(path.join(own, name)).size, 0);

  test('stay within the limit: what was not asked for for longest goes first', async () => {
    const own = newDirectory();
    const bench = await open({ directory: own, bytesMax: 250_000 });
    const host = await bench.zone('limited');
    const targets = Array.from({ length: 14 }, (_, index) => `/file/${index}`);
    for (const target of targets) {
      bench.origin(target, [{ headers: MINUTE, body: 'x'.repeat(20_000) }]);
      await bench.visit(host, target);
      // The first one is in use.
      expect(await stateOf(bench, host, '/file/0')).toBe(HIT);
    }
    await waitFor('the files', async () => bytesIn(own) <= 250_000);
    expect(filesIn(own).length).toBeGreaterThan(10);
    expect(await stateOf(bench, host, '/file/13')).toBe(HIT);
    expect(await stateOf(bench, host, '/file/1')).toBe('edge; fwd=uri-miss; stored');
    expect(bench.asked('/file/0')).toHaveLength(1);
  });

  test('are no more than the limit of objects, since each takes memory', async () => {
    const own = newDirectory();
    const bench = await open({ directory: own, objectsMax: 5 });
    const host = await bench.zone('counted');
    for (let index = 0; index < 12; index += 1) await bench.visit(host, `/one/${index}`);
    await waitFor('the files', async () => filesIn(own).length === 5);
    expect(await stateOf(bench, host, '/one/11')).toBe(HIT);
    expect(await stateOf(bench, host, '/one/0')).not.toBe(HIT);
  });

  test.each(['stopped', 'killed'])(
    'are found by the next run after one that was %s, in the order of use',
    async (how) => {
      const own = newDirectory();
      const first = await open({ directory: own });
      const host = await first.zone('kept');
      for (const target of ['/a', '/b', '/c', '/d']) {
        first.origin(target, [{ headers: { ...MINUTE, etag: '"e"', 'surrogate-key': 'tag' }, body: target }]);
        await first.visit(host, target);
      }
      await first.purge('kept', 'urls', ['/b']);
      await first.visit(host, '/a');
      if (how === 'stopped') await first.engine.close();
      writeFileSync(path.join(own, 'unfinished.part'), 'x');
      writeFileSync(path.join(own, 'strange'), 'x');
      // A process that was killed wrote no list; one that was stopped keeps three of four in it.
      const second = await open({ directory: own, objectsMax: how === 'stopped' ? 2 : 10 });
      await second.zone('kept', {}, { origin: { url: first.originUrl, host_header: 'o', is_internal: false } });
      // A purge waits for the index.
      await second.purge('another', 'all');
      expect((await second.visit(host, '/a')).headers).toMatchObject({ etag: '"e"', 'cache-status': HIT });
      expect(await stateOf(second, host, '/b')).toBe('edge; fwd=uri-miss; stored');
      if (how === 'killed') expect(await stateOf(second, host, '/d')).toBe(HIT);
      await second.purge('kept', 'tags', ['tag']);
      expect(await stateOf(second, host, '/a')).toBe('edge; fwd=uri-miss; stored');
      expect(readdirSync(own)).not.toContain('unfinished.part');
      expect(readdirSync(own)).not.toContain('strange');
    },
  );

  test.each([1_000, 400_000])('that are damaged are a miss, with bodies of %i bytes', async (size) => {
    const own = newDirectory();
    const bench = await open({ directory: own, memoryBytesMax: 300_000 });
    const host = await bench.zone('damaged');
    const body = 'x'.repeat(size);
    for (const target of ['/short', '/gone']) {
      bench.origin(target, [{ headers: MINUTE, body }]);
      await bench.visit(host, target);
      for (const name of filesIn(own))
        if (target === '/gone') rmSync(path.join(own, name));
        else truncateSync(path.join(own, name), statSync(path.join(own, name)).size - 10);
      const again = await bench.visit(host, target);
      expect([target, again.status, again.body === body, bench.asked(target).length]).toEqual([target, 200, true, 2]);
      expect(await stateOf(bench, host, target)).toBe(HIT);
    }
  });

  test('that can not be written cost no visitor an answer', async () => {
    const own = newDirectory();
    writeFileSync(own, 'no directory');
    const bench = await open({ directory: own });
    const host = await bench.zone('unwritable');
    bench.origin('/x', [{ headers: MINUTE }]);
    for (const body of ['answer 1', 'answer 2'])
      expect(await bench.visit(host, '/x')).toMatchObject({ status: 200, body });
  });
});

describe('origins', () => {
  const KILOBYTES = 6_000;
  /** More than all buffers between an origin and a visitor hold. */
  const MANY_KILOBYTES = 200_000;

  /** Sends chunks without saying how many, as fast as they are taken. */
  async function startStream(kilobytes = KILOBYTES): Promise<{ url: string; sent(): number; isClosed(): boolean }> {
    let [sent, closed] = [0, false];
    const { url } = await listen((_request, response) => {
      response.writeHead(200, { ...MINUTE, 'content-type': 'application/octet-stream' });
      response.on('close', () => (closed = true));
      const send = (): void => {
        if (response.destroyed) return;
        if (sent === kilobytes) return void response.end();
        sent += 1;
        response.write(Buffer.alloc(1_024, sent % 251), () => setImmediate(send));
      };
      send();
    });
    return { url, sent: () => sent, isClosed: () => closed };
  }

  test('a body of unknown length beyond the limit is passed on whole, and takes no more than the limit', async () => {
    const own = newDirectory();
    const bench = await open({ directory: own, objectBytesMax: 1_000_000 });
    const { url } = await startStream();
    const host = await bench.zone('endless', {}, { origin: { url, host_header: 'o', is_internal: false } });
    let most = 0;
    mkdirSync(own, { recursive: true });
    const timer = setInterval(() => {
      const sizes = readdirSync(own).map(
        (name) => statSync(path.join(own, name), { throwIfNoEntry: false })?.size ?? 0,
      );
      most = Math.max(most, ...sizes);
    }, 5);
    const { status, body } = await bench.visit(host, '/stream').finally(() => clearInterval(timer));
    expect([status, body.length]).toEqual([200, KILOBYTES * 1_024]);
    const whole = Buffer.from(body, 'latin1');
    for (let index = 0; index < KILOBYTES; index += 1) expect(whole[index * 1_024 + 7]).toBe((index + 1) % 251);
    expect(most).toBeLessThan(1_200_000);
    expect(readdirSync(own)).toEqual([]);
  });

  test('one that nobody reads any more is let go', async () => {
    const bench = await open({ objectBytesMax: 1_000_000 });
    const { url, sent, isClosed } = await startStream(MANY_KILOBYTES);
    const host = await bench.zone('left', {}, { origin: { url, host_header: 'o', is_internal: false } });
    const visitor = await visitWithoutReading(bench.port, host, '/stream');
    await waitFor('the first bytes', async () => sent() > 100);
    visitor.destroy();
    await waitFor('the end', async () => isClosed());
    expect(sent()).toBeLessThan(MANY_KILOBYTES);
  });

  test('the time for the head of a response is not that of its body', async () => {
    const bench = await open({ headMs: 2_500 });
    const { url } = await listen(async (request, response) => {
      if (request.url === '/head') await sleep(15_000, undefined, { ref: false });
      response.writeHead(200, { ...MINUTE, 'content-length': 5 });
      for (const letter of 'whole') {
        response.write(letter);
        await sleep(600);
      }
      response.end();
    });
    const host = await bench.zone('late', {}, { origin: { url, host_header: 'o', is_internal: false } });
    const [body, head] = await Promise.all([bench.visit(host, '/body'), bench.visit(host, '/head')]);
    expect([body.status, body.body, head.status]).toEqual([200, 'whole', 502]);
  });

  test('a name that leads to a private address later is refused when it is connected to', async () => {
    const dns = await startDnsServer();
    closers.push(() => dns.close());
    let reached = 0;
    const { server } = await listen((_request, response) => response.end(`answer ${(reached += 1)}`));
    const { port } = server.address() as AddressInfo;
    // This test's own idea of what is public.
    const isAllowed = (address: string): boolean => address === '127.0.0.1';
    const bench = await open(testEdgeOptions({ isAllowed, resolvers: [dns.address], hostsFile: false }));
    const origin = { url: `http://moves.example.org:${port}`, host_header: 'moves.example.org', is_internal: false };
    const host = await bench.zone('rebound', {}, { origin });
    dns.set('moves.example.org', 'A', ['127.0.0.1']);
    expect((await bench.visit(host, '/first')).body).toBe('answer 1');
    for (const addresses of [['127.0.0.2'], ['127.0.0.1', '10.0.0.1'], ['169.254.169.254']]) {
      dns.set('moves.example.org', 'A', addresses);
      expect([addresses, (await bench.visit(host, `/later/${addresses[0]}`)).status]).toEqual([addresses, 502]);
      expect((await bench.visit(host, '/write', { method: 'POST' })).status).toBe(502);
    }
    expect(reached).toBe(1);
    // What is stored is still there.
    expect(await stateOf(bench, host, '/first')).toBe(HIT);
  });
});
