/** @user any */
// CDN zones over HTTP/2, as browsers ask: bodies of any size, from the origin, the cache and its compressor.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import http2, { type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { openEmbeddedCdn } from '../../../engines/cdn/cache/driver';
import { startCdnBench, testEdgeOptions, type CdnBench } from '../../support/cdn/cdn_bench';
import { closeAll, openFront, type Front } from '../../support/ingress/ingress';
import { makeCertificate } from '../../support/ingress/ingress_certificate';
import { fileNeeds } from '../../support/runner/programs';
import { waitFor } from '../../support/wait_for';

fileNeeds('openssl');

const ID = 'cdn_browsers';
const HOST = `${ID}.cdn.example.com`;
const LIMITS = { bytesMax: 50e6, objectsMax: 1_000, memoryBytesMax: 20e6, objectBytesMax: 5e6 };
const directory = mkdtempSync(path.join(tmpdir(), 'cdn-http2-'));

let bench: CdnBench;
let front: Front;
let session: ClientHttp2Session;

beforeAll(async () => {
  bench = await startCdnBench(() => openEmbeddedCdn({ ...testEdgeOptions(), ...LIMITS, directory }));
  await bench.zone(ID);
  const { edge } = bench.engine;
  const parts = { certificate: async () => made, challenge: async () => null, line: () => undefined, edge };
  const made = makeCertificate(HOST);
  front = await openFront([], { tlsPort: 0, parts });
  session = http2.connect(`https://127.0.0.1:${front.ingress.ports.https}`, { ca: made.chain, servername: HOST });
});
afterAll(async () => {
  session?.destroy();
  await closeAll();
  await bench?.close();
  rmSync(directory, { recursive: true, force: true });
});

function ask(
  target: string,
  headers: Record<string, string> = {},
): Promise<{ head: IncomingHttpHeaders; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': target, ':authority': HOST, ...headers });
    let head: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on('response', (found) => (head = found)).on('error', reject);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => resolve({ head, body: Buffer.concat(chunks) }));
  });
}

test('a cache that is told of no purges any more asks the origin', async () => {
  const other = await startCdnBench(() =>
    openEmbeddedCdn({ ...testEdgeOptions(), ...LIMITS, directory: `${directory}/other` }),
  );
  try {
    const host = await other.zone('cdn_bypassed');
    await other.visit(host, '/x');
    expect((await other.visit(host, '/x')).headers['cache-status']).toBe('edge; hit');
    other.engine.bypassCache();
    expect((await other.visit(host, '/x')).headers['cache-status']).toBe('edge; fwd=bypass');
  } finally {
    await other.close();
  }
});

const digest = (body: Buffer | string): string => createHash('sha256').update(body).digest('hex');

// In memory at once, several writes, beyond the memory tier, beyond what is kept.
test.each([1_000, 100_000, 900_000, 3_000_000, 6_000_000])(
  'a body of %i bytes comes whole, each time',
  async (size) => {
    const body = Array.from({ length: size / 10 }, (_, index) => String(index).padStart(10, '.')).join('');
    const target = `/size/${size}`;
    bench.origin(target, [{ headers: { 'cache-control': 'max-age=60' }, body }]);
    bench.engine.driver.takeTraffic();
    const together = await Promise.all([ask(target), ask(target), ask(target)]);
    const later = [await ask(target), await ask(target, { 'accept-encoding': 'gzip' })];
    for (const { head, body: seen } of [...together, ...later]) {
      const plain = head['content-encoding'] === 'gzip' ? gunzipSync(seen) : seen;
      expect([head[':status'], plain.length, digest(plain)]).toEqual([200, body.length, digest(body)]);
    }
    const sent = [...together, ...later].reduce((sum, one) => sum + one.body.length, 0);
    let counted = 0;
    await waitFor('the counters', async () => {
      for (const { bytes } of bench.engine.driver.takeTraffic()) counted += bytes;
      return counted >= sent;
    });
    // Heads, and the framing of what has no length.
    expect(counted - sent).toBeLessThan(5 * 1_000 + sent / 100);
  },
);
