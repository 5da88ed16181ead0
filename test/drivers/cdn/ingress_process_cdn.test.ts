// The cache of CDN zones while a new ingress process takes the place of the running one: two caches, one directory.
import { readdirSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import type { CdnZoneSpec } from '../../../engines/cdn/cdn';
import type { RemoteIngress } from '../../../engines/ingress/process/remote';
import { ask, closeAll, startApp } from '../../support/ingress/ingress';
import {
  isProcessAlive,
  startIngressProcessBench,
  type IngressProcessBench,
} from '../../support/ingress/ingress_process';
import { retryCheck } from '../../support/wait_for';

const HOST = 'cdn.example.com';
const BODY = 'x'.repeat(200_000);

let bench: IngressProcessBench;
let before: RemoteIngress;
let port: number;
/** Ends the bodies that the origin holds back. */
let held: (() => void)[];
let served: Record<string, number>;

beforeEach(async () => {
  bench = startIngressProcessBench();
  [held, served] = [[], {}];
  const origin = await startApp((request, response) => {
    const url = request.url ?? '';
    served[url] = (served[url] ?? 0) + 1;
    response.writeHead(200, { 'cache-control': 'max-age=600', 'content-length': BODY.length });
    if (!url.startsWith('/slow')) return void response.end(BODY);
    response.write(BODY.slice(1));
    held.push(() => response.end('x'));
  });
  before = await bench.open();
  port = before.ingress.ports.http;
  await before.cdn.ensureZone('cdn_1', zoneTo(origin.port));
});

afterEach(async () => {
  held.forEach((end) => end());
  await bench.close();
  await closeAll();
});

function zoneTo(originPort: number): CdnZoneSpec {
  return {
    hosts: [{ host: HOST, domain_id: '' }],
    origin: { url: `http://127.0.0.1:${originPort}`, host_header: 'origin.example.com', is_internal: false },
    ...{ enabled: true, compression: false, force_https: false },
    cache: {
      ...{ default_ttl_seconds: 60, browser_ttl_seconds: null, respect_origin_headers: true },
      ...{ query_string: 'include', serve_stale: false },
    },
  };
}

/** Another setting needs another program, as another version does. */
async function upgrade(): Promise<RemoteIngress> {
  await bench.detach(before);
  return bench.open({ trustProxy: 1 });
}

const visit = async (target: string): Promise<unknown> => {
  const { status, body, headers } = await ask({ port }, { host: HOST, path: target });
  return [status, body === BODY, headers['cache-status']];
};
const MISS = [200, true, 'edge; fwd=uri-miss; stored'];
const HIT = [200, true, 'edge; hit'];

/** Resolves with the head. */
function begin(target: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path: target, headers: { host: HOST }, agent: false }, resolve)
      .on('error', reject);
  });
}

function readAll(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    response.on('data', (chunk) => (text += String(chunk)));
    response.on('error', reject).on('end', () => resolve(text));
  });
}

test('an answer that is streaming when the program changes comes to its end', async () => {
  const visitors = await Promise.all([begin('/slow'), begin('/slow')]);
  const bodies = visitors.map(readAll);
  const old = await bench.pid();
  await upgrade();
  // The new process has gone through the directory by now, and asks for itself.
  expect(await visit('/plain')).toEqual(MISS);
  expect(isProcessAlive(old)).toBe(true);
  held.splice(0).forEach((end) => end());
  for (const body of await Promise.all(bodies)) expect(body === BODY).toBe(true);
  expect(served['/slow']).toBe(1);
  await retryCheck(async () => expect(isProcessAlive(old)).toBe(false));
});

test('objects are found by the new program, and it knows each file of the directory', async () => {
  expect([await visit('/a'), await visit('/b')]).toEqual([MISS, MISS]);
  // A visitor has the whole body a moment before its file has its name.
  await retryCheck(async () => expect([await visit('/a'), await visit('/b')]).toEqual([HIT, HIT]));
  const originRequests = served['/a'];
  const slow = await begin('/slow');
  const body = readAll(slow);
  const after = await upgrade();
  expect([await visit('/b'), await visit('/a'), served['/a']]).toEqual([HIT, HIT, originRequests]);
  held.splice(0).forEach((end) => end());
  expect((await body).length).toBe(BODY.length);
  // What the old one has fetched meanwhile is in no file: a purge would not find it.
  await after.cdn.purge('cdn_1', { type: 'all', values: [] });
  await retryCheck(async () => {
    const files = readdirSync(path.join(bench.directory, 'cdn')).filter((name) => !name.startsWith('index'));
    expect(files).toEqual([]);
  });
  expect(await visit('/a')).toEqual(MISS);
});

test('a purge reaches the old program too, for requests on connections that it has yet', async () => {
  expect(await visit('/kept')).toEqual(MISS);
  const socket = connect(port, '127.0.0.1');
  const send = (target: string): unknown => socket.write(`GET ${target} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  const ended = new Promise((resolve) => socket.on('close', resolve));
  send('/slow');
  await retryCheck(async () => expect(held).toHaveLength(1));
  const old = await bench.pid();
  const after = await upgrade();
  expect(await bench.pid()).not.toBe(old);
  await after.cdn.purge('cdn_1', { type: 'all', values: [] });
  send('/kept');
  await retryCheck(async () => expect(served['/kept']).toBe(2));
  held.splice(0).forEach((end) => end());
  await ended;
  expect(text.match(/^cache-status: .*$/gm)).toHaveLength(2);
  expect(text).not.toContain('edge; hit');
});
