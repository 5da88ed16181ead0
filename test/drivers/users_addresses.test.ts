// Every client that connects to an address which a user gave, or which a server of a user names: none of them reaches
// an address that is not public, in any notation, behind any redirect and with any answer of the DNS; and none of them
// waits or reads without end.
import { mkdtempSync, rmSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type net from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { driverContext } from '../../core/driver';
import { openOutbound } from '../../core/outbound';
import { isPublicAddress } from '../../core/protocols/addresses';
import { openGitProviders } from '../../drivers/git_provider/open';
import { openImages } from '../../drivers/image/pull';
import { openLoginProvider } from '../../drivers/login_provider/open';
import { openMonitor } from '../../drivers/monitor/open';
import { openSender } from '../../drivers/notifier/open';
import { openSource } from '../../drivers/source/git';
import { findLfsServer, type LfsServer } from '../../drivers/source/lfs/server';
import { fetchLargeObject } from '../../drivers/source/lfs/objects';
import { openOriginClient } from '../../engines/cdn/edge/origin';
import { stsPolicies } from '../../engines/mail/mta_sts';
import { directRoute } from '../../engines/mail/route';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { anyAddress } from '../support/outbound';
import { hasProgram } from '../support/runner/has_program';

/** The one address of this machine that counts as public here. */
const PUBLIC = '127.0.0.1';
const INSIDE = '127.0.0.2';
const SECONDS = 1;

let dns: DnsServer;
let directory: string;
let reach: Record<string, (url: URL) => Promise<unknown>>;
/** Where the public server sends its clients on to, and how. */
let redirect = { status: 302, location: '' };
let answer: (request: IncomingMessage, response: ServerResponse) => void;
/** Addresses at which a connection was made. */
const connections: string[] = [];
const open: { close(): void }[] = [];
let port: number;

const serve = (host: string, at: number, server: net.Server): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject).listen(at, host, resolve);
    const sockets = new Set<net.Socket>();
    server.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
    open.push({ close: () => (server.close(), sockets.forEach((socket) => socket.destroy())) });
  });

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'users-addresses-'));
  dns = await startDnsServer({
    'public.example.com A': [PUBLIC],
    'inside.example.com A': [INSIDE],
    'mixed.example.com A': [PUBLIC, INSIDE],
    'six.example.com AAAA': ['::1'],
    'mapped.example.com AAAA': [`::ffff:${INSIDE}`],
    'translated.example.com AAAA': ['64:ff9b::7f00:2'],
    'alias.example.com CNAME': ['inside.example.com'],
  });
  const everywhere = http.createServer((request, response) => answer(request, response));
  everywhere.on('connection', () => connections.push(PUBLIC));
  await serve(PUBLIC, 0, everywhere);
  ({ port } = everywhere.address() as AddressInfo);
  // At the same port of the other addresses of this machine.
  for (const host of [INSIDE, '::1']) {
    const inside = http.createServer((_, response) => response.end('{}'));
    inside.on('connection', () => connections.push(host));
    await serve(host, port, inside);
  }
  reach = await openClients();
});

afterAll(async () => {
  for (const part of open) part.close();
  await dns.close();
  rmSync(directory, { recursive: true });
});

beforeEach(() => {
  connections.length = 0;
  dns.onAnswer = () => undefined;
  answer = (_, response) => response.writeHead(redirect.status, { location: redirect.location }).end();
});

async function openClients(): Promise<Record<string, (url: URL) => Promise<unknown>>> {
  const isAllowed = (address: string): boolean => address === PUBLIC || isPublicAddress(address);
  const outbound = openOutbound({ isAllowed, hostsFile: false, resolvers: [dns.address], caFile: null });
  const rules = { allowHttpGit: true, allowLocalGit: false, outbound };
  const ctx = () => driverContext(SECONDS * 2000);
  const monitor = openMonitor(outbound);
  const sender = openSender({
    ...{ outbound, pagerdutyUrl: '', smtpUrl: null, smtpFrom: 'a@example.com', caFile: null, timeoutSeconds: SECONDS },
    queue: null as never,
  });
  const source = await openSource({ ...rules, directory, sizeMb: 1 });
  const images = openImages(outbound, anyAddress);
  const providers = openGitProviders(outbound);
  const origins = openOriginClient(outbound, 'token');
  open.push(sender, origins);
  const check = (given: object) =>
    monitor.check({
      ...{ check: 'http', target: '', method: 'GET', headers: [], expected_status_codes: [], expected_body: 'never' },
      ...{ follow_redirects: true, verify_tls: true, timeout_seconds: SECONDS, ...given },
    });
  const notify =
    (type: 'webhook' | 'slack' | 'discord') =>
    ({ href }: URL) =>
      sender.send(
        type,
        { url: href, webhook_url: href },
        {
          ...{ id: 'msg_1', event: 'notifier.test', at: new Date().toISOString(), data: {}, link: null },
          ...{ project: { id: 'prj_1', name: 'Shop' }, notifier: { id: 'ntf_1', name: 'On call' } },
        },
      );
  const endpoint = { scheme: 'http', address: 'http://git.example.com/a', host: 'git.example.com', port: 80 } as const;
  const lfs: LfsServer = {
    ...{ endpoint: { ...endpoint, ips: [PUBLIC] }, headers: {}, rules, authorizationFor: () => ({}) },
  };
  const gitAccess = ({ origin }: URL) =>
    ({ provider: 'gitea', base_url: origin, auth_type: 'token', token: 'good-token-1' }) as const;
  const client = { client_id: 'a', client_secret: 'b', redirect_uri: 'https://platform.example.com/back' };
  const dnsOf = (host: string) => ({
    mx: async () => [`1 ${host}`],
    a: (name: string) => outbound.names.resolve(name),
    aaaa: async () => [],
    txt: async () => ['v=STSv1; id=1'],
  });
  return {
    'check of a page': ({ href }) => check({ target: href }),
    'check of a port': ({ host }) => check({ check: 'tcp', target: host }),
    ping: ({ hostname }) => check({ check: 'ping', target: hostname }),
    webhook: notify('webhook'),
    'Slack webhook': notify('slack'),
    'Discord webhook': notify('discord'),
    repository: ({ href }) => source.resolveHead({ address: href }, {}, ctx()),
    'repository over SSH': ({ host }) => source.resolveHead({ address: `ssh://git@${host}/a.git` }, {}, ctx()),
    'large files': ({ href }) =>
      fetchLargeObject(lfs, directory, { oid: 'a'.repeat(64), size: 3000, href, headers: {} }, ctx()),
    'server of large files': ({ href }) =>
      findLfsServer({ address: '' }, { endpoint: lfs.endpoint, config: [], env: {} }, href, rules, ctx()),
    image: ({ host }) => images.resolve(`${host}/shop/web:1`, { credentials: null, local: null }, ctx()),
    'Git provider': (url) => providers.client(gitAccess(url)).account(),
    'OAuth of a Git provider': (url) => providers.oauth.refresh(gitAccess(url), client, 'refresh-token'),
    'login provider': async (url) => {
      // The issuer is the operator's; what it names is not.
      const setting = { name: 'a', title: 'A', type: 'github', issuer: `http://issuer.example.com:${port}` } as const;
      const provider = openLoginProvider({ ...setting, ...client, issuer: url.origin }, outbound, outbound);
      const callback = new URL('https://platform.example.com/back?code=1&state=s');
      await provider.finish(callback, { state: 's', nonce: 'n', verifier: 'v'.repeat(50) });
    },
    'origin of a CDN zone': async ({ href }) => {
      const origin = { url: href, host_header: 'a', is_internal: false };
      const signal = AbortSignal.timeout(SECONDS * 1000);
      const got = await origins.send(origin, { method: 'GET', target: '/', headers: {}, body: null, signal });
      got.destroy();
    },
    'policy of a mail server': ({ hostname }) =>
      stsPolicies({ dns: dnsOf(hostname), outbound: policyOutbound(hostname), port })('example.com'),
    'mail server': async ({ hostname }) => {
      const parts = { isAllowed, policyOf: async () => null, port, ca: null };
      const route = await directRoute('example.com', { ...parts, dns: dnsOf(hostname) });
      if (route.kind === 'hops') connections.push(...route.hops.map((hop) => hop.host));
    },
  };

  /** `mta-sts.example.com` is the host. */
  function policyOutbound(host: string) {
    return { ...outbound, names: { ...outbound.names, resolve: () => outbound.names.resolve(host) } };
  }
}

const WITHOUT_HTTP = ['check of a port', 'ping', 'repository over SSH', 'mail server'];

const places = [
  ...[INSIDE, '2130706434', '0x7f000002', '0177.0.0.2', '0.0.0.0', '10.0.0.1', '100.64.0.1', '169.254.169.254'],
  ...['[::1]', '[::]', `[::ffff:${INSIDE}]`, '[::ffff:7f00:2]', `[::${INSIDE}]`, '[fd00::1]', '[fe80::1]'],
  // NAT64, its local form, 6to4 and Teredo.
  ...['[64:ff9b::7f00:2]', '[64:ff9b:1::7f00:2]', '[2002:7f00:2::]', '[2001:0:7f00:2::]'],
  ...['inside', 'mixed', 'six', 'mapped', 'translated', 'alias'].map((name) => `${name}.example.com`),
  'inside.example.com.',
];
const urlOf = (place: string): URL => new URL(`http://${place}:${port}/x`);
const settled = (name: string, url: URL): Promise<unknown> => reach[name]!(url).catch((error: unknown) => error);
const clients = (): string[] => Object.keys(reach);
const httpClients = (): string[] => clients().filter((name) => !WITHOUT_HTTP.includes(name));

test('each of them connects to a public address', async () => {
  answer = (_, response) => response.writeHead(404).end();
  const silent = [
    'ping',
    'large files',
    'server of large files',
    ...(hasProgram('ssh') ? [] : ['repository over SSH']),
  ];
  for (const name of clients().filter((one) => !silent.includes(one))) {
    connections.length = 0;
    await settled(name, urlOf('public.example.com'));
    expect([name, new Set(connections)]).toEqual([name, new Set([PUBLIC])]);
  }
});

test.each(places)('none of them connects to %s', async (place) => {
  await Promise.all(clients().map((name) => settled(name, urlOf(place))));
  // Mail goes to those addresses of a name that are public.
  expect(connections.filter((host) => host !== PUBLIC || place !== 'mixed.example.com')).toEqual([]);
  await Promise.all(clients().map((name) => settled(name, urlOf(`name:secret@${place}`))));
  expect(connections.filter((host) => host !== PUBLIC || place !== 'mixed.example.com')).toEqual([]);
});

test.each(places)('none of them is led on to %s by a redirect', async (place) => {
  for (const status of [302, 307]) {
    redirect = { status, location: `${urlOf(place)}/info/refs?service=git-upload-pack` };
    await Promise.all(httpClients().map((name) => settled(name, urlOf(PUBLIC))));
  }
  expect(connections.filter((host) => host !== PUBLIC)).toEqual([]);
  expect(connections.length).toBeGreaterThanOrEqual(httpClients().length);
});

test('none of them believes a second answer of the DNS', async () => {
  answer = (_, response) => response.writeHead(404).end();
  dns.onAnswer = (name) => dns.set(name, 'A', [INSIDE]);
  for (const name of clients()) {
    dns.set('rebinding.example.com', 'A', [PUBLIC]);
    await settled(name, urlOf('rebinding.example.com'));
  }
  expect(connections.filter((host) => host !== PUBLIC)).toEqual([]);
});

const bomb = gzipSync(Buffer.alloc(2 ** 26));
const hostile: [string, typeof answer][] = [
  ['huge headers', (_, response) => response.writeHead(200, { huge: 'a'.repeat(2 ** 20) }).end()],
  ['no answer', () => undefined],
  ['a body without an end', (_, response) => endless(response, 2 ** 16, 0)],
  ['a body that comes byte by byte', (_, response) => endless(response, 1, 50)],
  ['a bomb', (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)],
  ['redirects to itself', (_, response) => response.writeHead(302, { location: '/x' }).end()],
  ['no HTTP', ({ socket }) => socket.end('SSH-2.0-OpenSSH_9.6\r\n')],
];

function endless(response: ServerResponse, bytes: number, everyMs: number): void {
  response.writeHead(200);
  const piece = Buffer.alloc(bytes, '{');
  const next = (): void => {
    if (response.destroyed) return;
    const go = (): void => void setTimeout(next, everyMs);
    if (response.write(piece)) go();
    else response.once('drain', go);
  };
  next();
}

test.each(hostile)('none of them waits or reads for ever: %s', async (_, given) => {
  answer = given;
  const before = process.memoryUsage().rss;
  const startedAt = Date.now();
  await Promise.all(httpClients().map((name) => settled(name, urlOf(PUBLIC))));
  expect(Date.now() - startedAt).toBeLessThan(15_000);
  expect(process.memoryUsage().rss - before).toBeLessThan(400 * 2 ** 20);
});
