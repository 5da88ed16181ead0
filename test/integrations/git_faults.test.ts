// Faults of providers that need more than one process, or a name server: tokens that are refused before their time, and
// names that lead to private addresses, or do so only the second time.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { openGitProviders } from '../../drivers/git_provider/open';
import { openOutbound } from '../../core/outbound';
import { openPlatform } from '../../server/platform/platform';
import { startService as serve } from '../../server/service';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { startGitPeer, type GitPeer } from '../support/git/git_peer';
import { startService, type TestService } from '../support/service';

let peer: GitPeer;
let dns: DnsServer;

beforeAll(async () => {
  peer = await startGitPeer('github');
  peer.repositories = [{ id: 1, full_name: 'acme/shop', private: true, default_branch: 'main' }];
  dns = await startDnsServer();
});

afterAll(async () => {
  expect(peer.mistakes).toEqual([]);
  await peer.close();
  await dns.close();
});

describe('a token that is refused before its time', () => {
  let service: TestService;
  let other: { url: string; close(): Promise<void> };
  let path: string;

  beforeAll(async () => {
    const settings = {
      ...{ ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' },
      GIT_OAUTH_CLIENTS: `github@${peer.url}=client:secret-of-client`,
    };
    service = await startService({ settings });
    // A second control plane on the same database.
    const platform = await openPlatform({ ...service.platform.config, port: 0, adminPort: 0 });
    const second = await serve(platform);
    const close = async (): Promise<void> => {
      await second.close();
      await platform.close();
    };
    other = { url: `http://127.0.0.1:${second.config.port}`, close };
    const body = { provider: 'github', base_url: peer.url, auth_type: 'oauth' };
    const made = await service.call('POST', '/v2/git_integrations', { body });
    path = `/v2/git_integrations/${made.body.id}`;
    const state = new URL(made.body.authorization_url).searchParams.get('state');
    peer.grants = [{ access_token: 'granted-1', refresh_token: 'refresh-1', expires_in: 3600 }];
    const callback = `${service.url}/git/oauth/callback?state=${state}&code=abc`;
    expect((await fetch(callback, { method: 'POST' })).status).toBe(200);
  }, 60_000);

  afterAll(async () => {
    await other?.close();
    await service?.close();
  });

  const ask = async (base: string): Promise<number> => {
    const headers = { authorization: `Bearer ${service.key}`, 'x-svc-project': service.project };
    return (await fetch(`${base}${path}/repositories/1`, { headers })).status;
  };
  const refreshes = (): unknown[] =>
    peer.requests.filter(({ body }) => body?.grant_type === 'refresh_token').map(({ body }) => body.refresh_token);

  test('is refreshed by one of two control planes, and all requests are answered', async () => {
    expect([await ask(service.url), await ask(other.url)]).toEqual([200, 200]);
    peer.tokens.delete('granted-1');
    peer.grants = [{ access_token: 'granted-2', refresh_token: 'refresh-2', expires_in: 3600 }];
    const asked = [service.url, other.url].flatMap((base) => Array.from({ length: 5 }, () => ask(base)));
    expect(await Promise.all(asked)).toEqual(Array(10).fill(200));
    expect(refreshes()).toEqual(['refresh-1']);
    expect((await service.call('GET', path)).body).toMatchObject({ status: 'active', status_reason: null });
  });

  test('turns the integration to error where it cannot be refreshed, with what the provider said', async () => {
    peer.tokens.delete('granted-2');
    peer.grants = [];
    expect((await service.call('GET', `${path}/repositories/1`)).body.code).toBe('provider_error');
    const { body } = await service.call('GET', path);
    expect(body).toMatchObject({ status: 'error', status_reason: expect.stringContaining('The grant is invalid.') });
    expect(JSON.stringify(body)).not.toMatch(/granted-|refresh-|secret-of-client/);
    const asked = peer.requests.length;
    expect((await service.call('GET', `${path}/repositories/1`)).body.code).toBe('invalid_state');
    expect(peer.requests).toHaveLength(asked);
  });
});

test('a name that leads to a private address is refused when it is connected to', async () => {
  const service = await startService({ settings: { DNS_RESOLVERS: dns.address } });
  try {
    const before = peer.requests.length;
    for (const [name, type, address] of [
      ['inside.example.com', 'A', '127.0.0.1'],
      ['metadata.example.com', 'A', '169.254.169.254'],
      ['mapped.example.com', 'AAAA', '::ffff:10.0.0.1'],
    ] as const) {
      dns.set(name, type, [address]);
      const base_url = `https://${name}:${new URL(peer.url).port}`;
      const body = { provider: 'github', base_url, access_token: 'good-token-1' };
      const answer = await service.call('POST', '/v2/git_integrations', { body });
      expect([name, answer.status, answer.body.code]).toEqual([name, 502, 'provider_error']);
      expect(answer.body.detail).toContain('not public');
    }
    expect(peer.requests).toHaveLength(before);
  } finally {
    await service.close();
  }
});

test('the address that was judged is the one that is asked, whatever the name server says next', async () => {
  const asked: string[] = [];
  const allowed = http.createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('{}');
  });
  await new Promise<void>((resolve) => allowed.listen(0, '127.0.0.2', resolve));
  const { port } = allowed.address() as AddressInfo;
  // What must not be reached listens at the same port of another address.
  const inside = http.createServer((_, response) => response.end('{"login": "of the inside"}'));
  let reached = 0;
  inside.on('connection', () => (reached += 1));
  await new Promise<void>((resolve) => inside.listen(port, '127.0.0.1', resolve));
  try {
    dns.set('rebinding.example.com', 'A', ['127.0.0.2']);
    dns.onAnswer = (name) => void dns.set(name, 'A', ['127.0.0.1']);
    const isAllowed = (address: string): boolean => address === '127.0.0.2';
    const outbound = openOutbound({ isAllowed, hostsFile: false, resolvers: [dns.address], caFile: null });
    const base_url = `http://rebinding.example.com:${port}`;
    const access = { provider: 'github', base_url, auth_type: 'token', token: 'good-token-1' } as const;
    const client = openGitProviders(outbound).client(access);
    expect(await client.account()).toMatchObject({ login: '' });
    await expect(client.account()).rejects.toMatchObject({ failure: 'unreachable' });
    expect([asked, reached]).toEqual([['/api/v3/user'], 0]);
  } finally {
    dns.onAnswer = () => undefined;
    for (const server of [allowed, inside]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }
});
