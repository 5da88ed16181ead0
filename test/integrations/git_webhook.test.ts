// Deliveries of webhooks: signatures on the bytes that came, and the payloads of @octokit/webhooks-examples.
import { createHmac } from 'node:crypto';
import type { GitProviderName } from '../../core/protocols/git_provider';
import { isSigned, readEvent } from '../../drivers/git_provider/webhook';
import { startService, type TestService } from '../support/service';

interface Example {
  name: string;
  examples: unknown[];
}

const secret = 'a secret of the webhook';
const hmac = (body: Buffer | string, key = secret): string => createHmac('sha256', key).update(body).digest('hex');
/* oxlint-disable-next-line typescript/no-require-imports -- a package of JSON */
const octokit = require('@octokit/webhooks-examples') as Example[] | { default: Example[] };
const examples = 'default' in octokit ? octokit.default : octokit;

describe('GitHub', () => {
  test('each published payload passes with its signature, and with no other', () => {
    let count = 0;
    for (const { examples: payloads } of examples) {
      for (const payload of payloads) {
        const body = Buffer.from(JSON.stringify(payload));
        const sent = (value: string): object => ({ 'x-hub-signature-256': value });
        expect(isSigned('github', sent(`sha256=${hmac(body)}`) as never, body, secret)).toBe(true);
        const altered = Buffer.concat([body, Buffer.from(' ')]);
        for (const [given, bytes] of [
          [`sha256=${hmac(body, 'another')}`, body],
          [`sha256=${hmac(body)}`, altered],
          [hmac(body), body],
          [`sha1=${hmac(body)}`, body],
          ['', body],
        ] as const)
          expect(isSigned('github', sent(given) as never, bytes, secret)).toBe(false);
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(300);
  });

  test('each published payload is read, and only what matters is acted on', () => {
    const kinds = new Map<string, Set<string>>();
    for (const { name, examples: payloads } of examples) {
      const seen = payloads.map((payload) => readEvent({ 'x-github-event': name }, payload).kind);
      kinds.set(name, new Set(seen));
    }
    expect([...(kinds.get('pull_request') ?? [])]).toEqual(['pull_request']);
    expect([...(kinds.get('status') ?? [])]).toEqual(['checks']);
    expect([...(kinds.get('check_run') ?? [])]).toEqual(['checks']);
    // A tag that is pushed deploys nothing.
    expect([...(kinds.get('push') ?? [])].every((kind) => kind === 'push' || kind === 'other')).toBe(true);
    for (const name of ['ping', 'issues', 'release', 'star', 'fork'])
      expect([...(kinds.get(name) ?? [])]).toEqual(['other']);
  });
});

test.each([
  ['gitlab', { 'x-gitlab-token': secret }, { 'x-gitlab-token': 'wrong' }],
  ['gitea', { 'x-gitea-signature': hmac('{}') }, { 'x-gitea-signature': `sha256=${hmac('{}')}` }],
  ['bitbucket', { 'x-hub-signature': `sha256=${hmac('{}')}` }, { 'x-hub-signature': hmac('{}') }],
] as [GitProviderName, object, object][])('%s signs in its own way', (provider, right, wrong) => {
  expect(isSigned(provider, right as never, Buffer.from('{}'), secret)).toBe(true);
  expect(isSigned(provider, wrong as never, Buffer.from('{}'), secret)).toBe(false);
  expect(isSigned(provider, {}, Buffer.from('{}'), secret)).toBe(false);
});

test.each([
  [{ 'x-gitlab-event': 'Push Hook' }, { object_kind: 'push', ref: 'refs/heads/a/b' }, { kind: 'push', branch: 'a/b' }],
  [
    { 'x-gitlab-event': 'Merge Request Hook' },
    { object_kind: 'merge_request', object_attributes: { iid: 3 } },
    { kind: 'pull_request', number: 3 },
  ],
  [{ 'x-gitlab-event': 'Pipeline Hook' }, { object_kind: 'pipeline' }, { kind: 'checks' }],
  [{ 'x-gitlab-event': 'Tag Push Hook' }, { object_kind: 'tag_push', ref: 'refs/tags/v1' }, { kind: 'other' }],
  [{ 'x-gitea-event': 'push' }, { ref: 'refs/heads/main' }, { kind: 'push', branch: 'main' }],
  [{ 'x-gitea-event': 'pull_request_sync' }, { number: 4 }, { kind: 'pull_request', number: 4 }],
  [
    { 'x-event-key': 'repo:push' },
    { push: { changes: [{ new: { type: 'branch', name: 'main' } }] } },
    { kind: 'push', branch: 'main' },
  ],
  [{ 'x-event-key': 'repo:push' }, { push: { changes: [{ new: null }] } }, { kind: 'other' }],
  [{ 'x-event-key': 'pullrequest:created' }, { pullrequest: { id: 5 } }, { kind: 'pull_request', number: 5 }],
  [{ 'x-event-key': 'repo:commit_status_updated' }, {}, { kind: 'checks' }],
  [{ 'x-github-event': 'pull_request' }, { number: 2 ** 40 }, { kind: 'other' }],
  [{ 'x-github-event': 'push' }, null, { kind: 'other' }],
  [{}, 'nonsense', { kind: 'other' }],
])('%j with %j is %j', (headers, body, event) => {
  expect(readEvent(headers, body)).toEqual(event);
});

describe('the address', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  test('of a shared repository takes anything, one that nobody has takes nothing', async () => {
    const { body } = await service.call('POST', '/v2/shared_repositories', {
      body: { url: 'git@git.example.com:a/b.git' },
    });
    const send = (url: string, init: RequestInit = {}): Promise<Response> => fetch(url, { method: 'POST', ...init });
    expect((await send(body.webhook_url)).status).toBe(202);
    expect((await send(body.webhook_url, { body: '{broken', headers: { 'x-github-event': 'push' } })).status).toBe(400);
    expect((await send(body.webhook_url.slice(0, -1) + '_')).status).toBe(404);
    expect((await send(`${service.url}/hooks/git/x`)).status).toBe(404);
    expect((await fetch(body.webhook_url)).status).toBe(404);
    const large = await send(body.webhook_url, { body: Buffer.alloc(26 * 2 ** 20) }).then(
      ({ status }) => status,
      () => 413,
    );
    expect(large).toBe(413);
  });
});
