// What RFC 9700 (best current practice for OAuth security) says attackers try.
import { OAUTH_PATHS } from '../../../core/accounts/oauth';
import { withinOneMinute } from '../../support/processes/within_one_minute';
import { startService, type TestService } from '../../support/service';
import { openClient, REDIRECT, refusal, type Client } from './client';
import { newPerson, type Person } from '../../support/identity/person';

let service: TestService;
let client: Client;
let person: Person;

beforeAll(async () => {
  service = await startService({ settings: { RATE_LIMIT_FAILED_AUTH: '30' } });
  person = await newPerson(service, 'victim@example.com', 'owner');
  client = await openClient(service);
});
afterAll(() => service.close());

const errorIn = (url: string): string | null =>
  new URLSearchParams(new URL(url).search || new URL(url).hash.slice(1)).get('error');
const me = (key: string): ReturnType<TestService['call']> => service.call('GET', '/v2/me', { key, project: null });

async function token(fields: Record<string, string>): Promise<{ status: number; error: string; text: string }> {
  const body = new URLSearchParams({ client_id: 'platform-cli', ...fields });
  const answer = await fetch(service.url + OAUTH_PATHS.token, { method: 'POST', body });
  const text = await answer.text();
  return { status: answer.status, error: JSON.parse(text).error, text };
}

describe('open redirects and stolen codes (section 4.1)', () => {
  it.each([
    ['another host', 'https://attacker.example/callback'],
    ['another path', 'http://127.0.0.1:49152/other'],
    ['a host that begins like ours', 'http://127.0.0.1.attacker.example/callback'],
    ['a user part', 'http://127.0.0.1@attacker.example/callback'],
    ['a fragment', 'http://127.0.0.1/callback#x'],
    ['a query', 'http://127.0.0.1/callback?next=https://attacker.example'],
    ['a script', 'javascript:alert(1)'],
    ['nothing', ''],
  ])('%s is no address for a code: nobody is sent there', async (_, redirect_uri) => {
    const page = await person.open((await client.ask({ redirect_uri })).url);
    expect([page.status, page.title]).toEqual([400, 'This did not work']);
    expect(page.url.startsWith(service.url)).toBe(true);
  });

  it('a program on the computer may listen on any port, by name and both families', async () => {
    for (const redirect of ['http://127.0.0.1:1/callback', 'http://[::1]:65000/callback']) {
      const asked = await client.ask({ redirect_uri: redirect });
      const back = await client.agree(person, asked);
      expect(back.url.startsWith(redirect)).toBe(true);
      expect((await client.redeem(asked, back, redirect)).access_token).toBeTruthy();
    }
  });

  it('an unknown client is told nothing but that', async () => {
    const page = await person.open((await client.ask({ client_id: 'somebody' })).url);
    expect(page.status).toBe(400);
  });
});

describe('mix-up (section 4.4)', () => {
  it('every answer says whose it is, refusals too, and the client refuses another', async () => {
    const asked = await client.ask();
    const back = await client.agree(person, asked);
    const refused = await person.open((await client.ask({ scope: 'root' })).url);
    for (const { url } of [back, refused]) expect(new URL(url).searchParams.get('iss')).toBe(service.url);
    const oauth = await import('oauth4webapi');
    const forged = new URL(back.url);
    forged.searchParams.set('iss', 'https://attacker.example');
    expect(() => oauth.validateAuthResponse(client.server, client.client, forged, asked.state)).toThrow(/iss/);
  });
});

describe('injected codes (section 4.5)', () => {
  it('a code is of use only to who began: the verifier, the address and the client must be theirs', async () => {
    const asked = await client.ask();
    const code = new URL((await client.agree(person, asked)).url).searchParams.get('code') as string;
    const right = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: asked.verifier };
    const other = (await client.ask()).verifier;
    expect(await token({ ...right, code_verifier: other })).toMatchObject({ status: 400, error: 'invalid_grant' });
    expect(await token({ ...right, redirect_uri: 'http://127.0.0.1:1/callback' })).toMatchObject({
      error: 'invalid_grant',
    });
    expect(await token({ ...right, client_id: 'somebody' })).toMatchObject({ status: 401, error: 'invalid_client' });
    expect(JSON.parse((await token(right)).text).access_token).toBeTruthy();
  });

  it('a code that comes twice ends what the first one gave', async () => {
    const asked = await client.ask();
    const back = await client.agree(person, asked);
    const first = await client.redeem(asked, back);
    expect((await me(first.access_token)).status).toBe(200);
    expect(await refusal(client.redeem(asked, back))).toBe('invalid_grant');
    expect((await me(first.access_token)).status).toBe(401);
    expect(await refusal(client.refresh(first.refresh_token as string))).toBe('invalid_grant');
  });

  it('a code that comes several times at once gives tokens once at most, and to none when it comes again', async () => {
    const asked = await client.ask();
    const back = await client.agree(person, asked);
    const answers = await Promise.allSettled([1, 2, 3].map(() => client.redeem(asked, back)));
    const given = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    expect(given.length).toBeLessThanOrEqual(1);
    expect(await refusal(client.redeem(asked, back))).toBe('invalid_grant');
    for (const { access_token } of given) expect((await me(access_token)).status).toBe(401);
  });
});

describe('PKCE downgrade (section 4.8.2)', () => {
  it.each([
    ['no challenge', { code_challenge: null, code_challenge_method: null }],
    ['a plain challenge', { code_challenge_method: 'plain' }],
    ['a challenge without its method', { code_challenge_method: null }],
  ])('%s is refused', async (_, parameters) => {
    const page = await person.open((await client.ask(parameters)).url);
    expect(errorIn(page.url)).toBe('invalid_request');
  });

  it('tokens need the verifier', async () => {
    const asked = await client.ask();
    const code = new URL((await client.agree(person, asked)).url).searchParams.get('code') as string;
    expect(await token({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT })).toMatchObject({
      error: 'invalid_grant',
    });
  });
});

describe('what is not offered is refused', () => {
  it.each([
    ['the implicit grant', { response_type: 'token' }, 'unsupported_response_mode'],
    ['tokens of identity', { scope: 'openid read' }, 'invalid_scope'],
    ['a scope that does not exist', { scope: 'read root' }, 'invalid_scope'],
    ['no scope', { scope: null }, 'invalid_scope'],
    ['another resource', { resource: 'https://api.attacker.example' }, 'invalid_target'],
    ['a request object', { request: 'e30.e30.' }, 'request_not_supported'],
    ['a long name of a device', { device_name: 'x'.repeat(61) }, 'invalid_request'],
  ])('%s', async (_, parameters, error) => {
    const page = await person.open((await client.ask(parameters)).url);
    expect(errorIn(page.url)).toBe(error);
  });

  it.each([
    ['passwords', { grant_type: 'password', username: 'victim@example.com', password: 'x' }],
    ['credentials of clients', { grant_type: 'client_credentials' }],
    ['exchange of tokens', { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: 'x' }],
  ])('%s', async (_, fields) => {
    expect(await token(fields as unknown as Record<string, string>)).toMatchObject({
      status: 400,
      error: 'unsupported_grant_type',
    });
  });

  it('addresses of the library that are not ours', async () => {
    for (const path of [
      '/oauth/jwks',
      '/jwks',
      '/.well-known/openid-configuration',
      '/oauth/register',
      '/oauth/session/end',
    ])
      expect([path, (await fetch(service.url + path)).status]).toEqual([path, 404]);
  });

  it('a resource of our own may be named', async () => {
    const tokens = await client.connect(person, { resource: `${service.url}/mcp` });
    expect((await me(tokens.access_token)).status).toBe(200);
  });
});

describe('guesses', () => {
  it('at tokens are counted by the address, and then refused', async () => {
    const statuses = new Set<number>();
    await withinOneMinute(5_000);
    for (let turn = 0; turn < 40; turn += 1) {
      const body = new URLSearchParams({ client_id: 'platform-cli', grant_type: 'refresh_token', refresh_token: 'x' });
      statuses.add((await fetch(service.url + OAUTH_PATHS.token, { method: 'POST', body })).status);
    }
    expect([...statuses].sort()).toEqual([400, 429]);
  });
});
