// What a person allowed is among their keys: seen, used, revoked; with two processes, and with one that is killed.
import { startService, type TestService } from '../../support/service';
import { openPlatform } from '../../../server/platform/platform';
import { startService as serve } from '../../../server/service';
import { browser, type Browser } from '../../support/identity/browser';
import { openClient, refusal, type Client } from './client';
import { newPerson, type Person } from '../../support/identity/person';

let service: TestService;
let client: Client;
let person: Person;
let dashboard: Browser;

beforeAll(async () => {
  service = await startService();
  person = await newPerson(service, 'keys@example.com', 'owner');
  client = await openClient(service);
  dashboard = browser(service);
  await dashboard.logIn(person.email);
});
afterAll(() => service.close());

const KEYS = '{ listPersonalKeys { data { id kind name client_id scopes project_ids last_used_at expires_at } } }';
const REVOKE = 'mutation ($id: ID!) { revokePersonalKey(id: $id) }';

interface Key {
  id: string;
  kind: string;
  name: string;
  client_id: string | null;
  last_used_at: string | null;
  expires_at: string;
}

const keys = async (): Promise<Key[]> => (await dashboard.data(KEYS)).listPersonalKeys.data;
const statusOf = async (key: string, url = service.url): Promise<number> =>
  (await fetch(`${url}/v2/me`, { headers: { authorization: `Bearer ${key}` } })).status;

async function until(what: () => Promise<boolean>, seconds: number): Promise<number> {
  const started = Date.now();
  while (!(await what())) {
    if (Date.now() - started > seconds * 1_000) throw new Error(`not within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return (Date.now() - started) / 1_000;
}

it('is listed with its name and use, and ends at once when it is revoked', async () => {
  const tokens = await client.connect(person);
  expect(await statusOf(tokens.access_token)).toBe(200);
  const [key] = await keys();
  expect(key).toMatchObject({ kind: 'oauth', name: 'Command line on laptop', client_id: 'platform-cli' });
  expect((Date.parse(key?.expires_at as string) - Date.now()) / 86_400_000).toBeCloseTo(90, 1);
  await until(async () => (await keys())[0]?.last_used_at !== null, 10);
  await dashboard.data(REVOKE, { id: key?.id });
  expect(await statusOf(tokens.access_token)).toBe(401);
  expect(await refusal(client.refresh(tokens.refresh_token as string))).toBe('invalid_grant');
  expect((await keys()).map(({ id }) => id)).not.toContain(key?.id);
});

it('ends when the program gives its token back (RFC 7009), either of them', async () => {
  for (const name of ['access_token', 'refresh_token'] as const) {
    const tokens = await client.connect(person);
    expect(await keys()).toHaveLength(1);
    await client.revoke(tokens[name] as string);
    expect(await statusOf(tokens.access_token)).toBe(401);
    expect(await refusal(client.refresh(tokens.refresh_token as string))).toBe('invalid_grant');
    expect(await keys()).toEqual([]);
  }
  // Of a token that does not exist the server says the same.
  await client.revoke('svc_oauth_unknown');
});

it('ends with the other keys when a new password is set', async () => {
  const guest = await newPerson(service, 'new-password@example.com', 'viewer');
  const tokens = await client.connect(guest);
  const own = browser(service);
  await own.logIn(guest.email);
  const CHANGE = `mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { revoked_keys { kind } } }`;
  const input = {
    password: 'a long enough password',
    new_password: 'another password of mine',
    revoke_personal_keys: true,
  };
  expect((await own.data(CHANGE, { input })).changePassword.revoked_keys).toEqual([{ kind: 'oauth' }]);
  expect(await statusOf(tokens.access_token)).toBe(401);
});

it('leaves its id in the activity, and counts in the limits of the account', async () => {
  const tokens = await client.connect(person, { scope: 'read write' });
  const body = { name: 'From a program' };
  const path = `/v2/projects/${service.project}`;
  const changed = await service.call('PATCH', path, { key: tokens.access_token, body });
  expect([changed.status, changed.headers.get('ratelimit-remaining')]).toEqual([200, expect.stringMatching(/^\d+$/)]);
  const [key] = await keys();
  const [entry] = await service.sql('select key_id, actor from activity where action = $1 order by id desc limit 1', [
    'project.updated',
  ]);
  expect(entry).toMatchObject({ key_id: key?.id, actor: { type: 'user', id: person.id } });
});

describe('streams', () => {
  it('end within 15 s of the end of the right to them, REST and GraphQL', async () => {
    const tokens = await client.connect(person);
    const headers = { authorization: `Bearer ${tokens.access_token}`, accept: 'text/event-stream' };
    const rest = await fetch(`${service.url}/v2/projects/${service.project}/activity`, { headers });
    const graphql = await fetch(`${service.url}/graphql`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'x-svc-project': service.project },
      body: JSON.stringify({ query: `subscription { followProjectActivity(id: "${service.project}") { action } }` }),
    });
    expect([rest.status, graphql.status]).toEqual([200, 200]);
    const ends = Promise.all([rest.text(), graphql.text()]);
    await client.revoke(tokens.access_token);
    const started = Date.now();
    const [first, second] = await ends;
    expect((Date.now() - started) / 1_000).toBeLessThan(16);
    for (const text of [first, second]) expect(text).toContain('token_invalid');
  });
});

describe('two processes at once', () => {
  it('know the same tokens, codes and pages; what one ends the other ends within two seconds', async () => {
    const { config } = service.platform;
    const platform = await openPlatform({ ...config, port: 0, adminPort: 0 });
    const second = await serve(platform);
    try {
      const url = `http://127.0.0.1:${second.config.port}`;
      const asked = await client.ask();
      const back = await client.agree(person, asked);
      const body = new URLSearchParams({
        ...{ client_id: 'platform-cli', grant_type: 'authorization_code', code_verifier: asked.verifier },
        ...{
          code: new URL(back.url).searchParams.get('code') as string,
          redirect_uri: 'http://127.0.0.1:49152/callback',
        },
      });
      const tokens = (await (await fetch(`${url}/oauth/token`, { method: 'POST', body })).json()) as Record<
        'access_token' | 'refresh_token',
        string
      >;
      expect(await statusOf(tokens.access_token)).toBe(200);
      expect(await statusOf(tokens.access_token, url)).toBe(200);
      const refreshed = await client.refresh(tokens.refresh_token);
      expect(await statusOf(refreshed.access_token, url)).toBe(200);
      // Equal refreshes at both at once.
      const fields = { client_id: 'platform-cli', grant_type: 'refresh_token' };
      const equal = new URLSearchParams({ ...fields, refresh_token: refreshed.refresh_token as string });
      const answers = await Promise.all(
        Array.from({ length: 20 }, async (_, which) => {
          const answer = await fetch(`${[service.url, url][which % 2]}/oauth/token`, { method: 'POST', body: equal });
          return (await answer.json()) as { refresh_token: string };
        }),
      );
      for (const answer of answers) expect(answer).toHaveProperty('refresh_token');
      const next = await client.refresh(answers[11]?.refresh_token as string);
      expect(await statusOf(next.access_token, url)).toBe(200);
      await client.revoke(refreshed.access_token);
      expect(await until(async () => (await statusOf(tokens.access_token, url)) === 401, 5)).toBeLessThan(2.5);
    } finally {
      await second.close();
      await platform.close();
    }
  });
});

it('may not delete unless the person says so, which is off on the page', async () => {
  const kept = await client.connect(person, { scope: 'read write' });
  const asked = await client.ask({ scope: 'read write' });
  const page = await person.open(asked.url);
  expect(page.html).toMatch(/name="may_destroy" value="yes" >Delete, and overwrite what cannot be made again/);
  const allowed = await client.redeem(asked, await person.submit(page, { action: 'allow', may_destroy: 'yes' }));
  const answers = [];
  for (const { access_token: key } of [kept, allowed]) {
    const { body: volume } = await service.call('POST', '/v2/volumes', {
      key,
      body: { name: `of-${answers.length}`, size_gb: 1 },
    });
    const { body: me } = await service.call('GET', '/v2/me', { key, project: null });
    const gone = await service.call('DELETE', `/v2/volumes/${volume.id}`, { key });
    answers.push([me.token.may_destroy, gone.status, gone.body?.code ?? null]);
  }
  expect(answers).toEqual([
    [false, 403, 'destroy_not_allowed'],
    [true, 204, null],
  ]);
  // Of a program that only reads it is not asked.
  expect((await person.open((await client.ask({ scope: 'read' })).url)).html).not.toContain('may_destroy');
});
