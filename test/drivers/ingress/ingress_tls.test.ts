// TLS by server name, the way from http to https, and the answers to certificate authorities.
import https from 'node:https';
import tls from 'node:tls';
import type { Certificate } from '../../../engines/ingress/ingress';
import { contextOf, tlsContextCache } from '../../../engines/ingress/tls_contexts';
import {
  ask,
  closeAll,
  openFront,
  routeOf,
  startApp,
  whole,
  type Answer,
  type App,
  type Front,
} from '../../support/ingress/ingress';
import { makeCertificate } from '../../support/ingress/ingress_certificate';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

let made: Certificate;

beforeAll(() => {
  made = makeCertificate('app.example.com', '*.example.com');
});
afterEach(closeAll);

const mirror = (): Promise<App> => startApp((request, response) => response.end(JSON.stringify(request.headers)));
const withTls = async (over = {}): Promise<Front> =>
  openFront([routeOf([await mirror()], { hosts: ['app.example.com', '*.apps.example.com'], ...over })], { tlsPort: 0 });

function askSecurely(front: Front, name: string, options: tls.ConnectionOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    https
      .get(
        {
          host: '127.0.0.1',
          port: front.ingress.ports.https,
          servername: name,
          ca: made.chain,
          agent: false,
          headers: { host: name },
          ...options,
        },
        (response) => void whole(response).then(resolve, reject),
      )
      .on('error', reject);
  });
}

test('a certificate by name, asked for once', async () => {
  const front = await withTls();
  front.certificates.set('app.example.com', made);
  const { status, body } = await askSecurely(front, 'app.example.com');
  expect(status).toBe(200);
  expect(JSON.parse(body)).toMatchObject({
    'x-forwarded-proto': 'https',
    'x-forwarded-port': '443',
    'x-forwarded-for': '127.0.0.1',
  });
  await Promise.all([askSecurely(front, 'app.example.com'), askSecurely(front, 'app.example.com')]);
  expect(front.asked).toEqual(['app.example.com']);
});

test('names without a certificate fail in the handshake; strangers are not even asked for', async () => {
  const front = await withTls();
  for (let index = 0; index < 3; index += 1)
    await expect(askSecurely(front, 'app.example.com')).rejects.toThrow(/handshake failure/i);
  expect(front.asked).toEqual(['app.example.com']);
  await expect(askSecurely(front, 'stranger.example.org')).rejects.toThrow(/handshake failure/i);
  expect(front.asked).toEqual(['app.example.com']);
  front.certificates.set('app.example.com', made);
  front.ingress.forgetCertificate('App.example.com');
  expect((await askSecurely(front, 'app.example.com')).status).toBe(200);
});

test('a certificate that cannot be used is as good as none, and the listener lives', async () => {
  const front = await withTls();
  front.certificates.set('app.example.com', { chain: 'nonsense', key: 'nonsense' });
  await expect(askSecurely(front, 'app.example.com')).rejects.toThrow(/handshake failure/i);
  front.certificates.set('app.example.com', made);
  front.ingress.forgetCertificate('app.example.com');
  expect((await askSecurely(front, 'app.example.com')).status).toBe(200);
});

test('TLS 1.2 and 1.3, nothing older; HTTP/2 is agreed on where the client has it', async () => {
  const front = await withTls();
  front.certificates.set('app.example.com', made);
  expect((await askSecurely(front, 'app.example.com', { maxVersion: 'TLSv1.2' })).status).toBe(200);
  await expect(askSecurely(front, 'app.example.com', { minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })).rejects.toThrow();
  const socket = await new Promise<tls.TLSSocket>((resolve, reject) => {
    const open = tls
      .connect(
        {
          host: '127.0.0.1',
          port: front.ingress.ports.https ?? 0,
          servername: 'app.example.com',
          ca: made.chain,
          ALPNProtocols: ['h2', 'http/1.1'],
        },
        () => resolve(open),
      )
      .on('error', reject);
  });
  expect([socket.alpnProtocol, socket.getProtocol()]).toEqual(['h2', 'TLSv1.3']);
  socket.destroy();
});

test('http leads to https only where there is a certificate', async () => {
  const front = await withTls({ force_https: true });
  expect((await ask(front, { path: '/a?b=1' })).status).toBe(200);
  front.certificates.set('app.example.com', made);
  front.ingress.forgetCertificate('app.example.com');
  expect(await ask(front, { path: '/a?b=1' })).toMatchObject({
    status: 308,
    headers: { location: 'https://app.example.com/a?b=1' },
  });
  const { headers } = await ask(front, { host: `app.example.com:${front.port}`, path: '/a' });
  expect(headers.location).toBe(`https://app.example.com:${front.ingress.ports.https}/a`);
  expect((await askSecurely(front, 'app.example.com')).status).toBe(200);
  expect((await ask(front, { host: 'x.apps.example.com' })).status).toBe(200);
});

test('challenges are answered before everything else, on the plain port', async () => {
  const front = await withTls({ force_https: true, maintenance: true });
  front.certificates.set('app.example.com', made);
  front.tokens.set('tok-1', 'tok-1.thumb');
  const path = '/.well-known/acme-challenge/tok-1';
  expect(await ask(front, { path })).toMatchObject({ status: 200, body: 'tok-1.thumb' });
  expect(await ask(front, { path, host: 'new.example.org' })).toMatchObject({ status: 200, body: 'tok-1.thumb' });
  expect((await ask(front, { path: '/.well-known/acme-challenge/other', host: 'new.example.org' })).status).toBe(404);
  expect((await ask(front, { path: '/.well-known/acme-challenge/../x', host: 'new.example.org' })).status).toBe(404);
});

test('what nobody but the platform may prove is not asked of the application', async () => {
  const front = await withTls();
  const path = '/.well-known/acme-challenge/of-a-tenant';
  expect((await ask(front, { path, host: 'app.example.com' })).status).toBe(200);
  front.tokens.set('of-a-tenant', '');
  expect((await ask(front, { path, host: 'app.example.com' })).status).toBe(404);
});

test('names without a certificate, which strangers choose, push out none that has one', async () => {
  const asked: string[] = [];
  const store = tlsContextCache(async (host) => {
    asked.push(host);
    return host === 'app.example.com' ? made : null;
  });
  const first = await contextOf(store, 'app.example.com');
  for (let number = 0; number < 20_100; number += 1) await contextOf(store, `b${number}.s3.example.com`);
  expect(store.entries.size).toBe(20_000);
  asked.length = 0;
  expect(await contextOf(store, 'app.example.com')).toBe(first);
  expect(asked).toEqual([]);
});

test('names with the same certificate share one context, also those that strangers invent', async () => {
  const other = makeCertificate('app.example.com', '*.example.com');
  let served = made;
  const cache = tlsContextCache(async () => ({ ...served }));
  const [first, second] = [await contextOf(cache, 'a.example.com'), await contextOf(cache, 'b.example.com')];
  expect(first).not.toBeNull();
  expect(second).toBe(first);
  served = other;
  expect(await contextOf(cache, 'c.example.com')).not.toBe(first);
});
