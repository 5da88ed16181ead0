// The authorisation code with PKCE, as an independent client and a browser without scripts do it.
import { startService, type TestService } from '../../support/service';
import { browser, PASSWORD } from '../../support/identity/browser';
import { openClient, refusal, type Client } from './client';
import { logIn, newPerson, visitor, type Person } from '../../support/identity/person';

let service: TestService;
let client: Client;
let person: Person;

beforeAll(async () => {
  service = await startService();
  person = await newPerson(service, 'program@example.com', 'owner');
  client = await openClient(service);
});
afterAll(() => service.close());

const me = (key: string): ReturnType<TestService['call']> => service.call('GET', '/v2/me', { key, project: null });
const errorIn = (url: string): string | null => new URL(url).searchParams.get('error');

describe('a program of a person', () => {
  it('logs in, is allowed, and acts for the person with what was agreed', async () => {
    const asked = await client.ask();
    const login = await person.open(asked.url);
    expect(login).toMatchObject({ status: 200, title: 'Log in' });
    const consent = await logIn(person, login);
    expect(consent.title).toBe('Allow Command line to act for you?');
    expect(consent.html).toContain('Trigger, cancel and roll back deployments.');
    const back = await person.submit(consent, { action: 'allow' });
    expect(new URL(back.url).searchParams.get('iss')).toBe(service.url);
    const tokens = await client.redeem(asked, back);
    expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 3600, scope: 'read deploy' });
    expect('refresh_token' in tokens).toBe('refresh_token_expires_in' in tokens);
    expect(tokens.access_token).toMatch(/^svc_oauth_[0-9A-Za-z]{39}$/);
    const { status, body } = await me(tokens.access_token);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      token: { kind: 'oauth', name: 'Command line on laptop', scopes: ['read', 'deploy'], project_ids: null },
      user: { email: person.email },
    });
    expect((await service.call('GET', '/v2/volumes', { key: tokens.access_token })).status).toBe(200);
    const refused = await service.call('POST', '/v2/volumes', { key: tokens.access_token, body: {} });
    expect([refused.status, refused.body.code]).toEqual([403, 'insufficient_scope']);
  });

  it('gets less where the person allows less, and nothing where they do not', async () => {
    const other = await newPerson(service, 'two-projects@example.com', 'owner');
    const asked = await client.ask({ scope: 'read write logs:read' });
    const back = await client.agree(other, asked, {
      scope: ['read', 'logs:read'],
      all_projects: null,
      project: service.project,
      name: 'Less',
    });
    const tokens = await client.redeem(asked, back);
    expect(tokens.scope).toBe('read logs:read');
    expect((await me(tokens.access_token)).body.token).toMatchObject({
      name: 'Less',
      scopes: ['read', 'logs:read'],
      project_ids: [service.project],
    });
    const again = await client.ask();
    const denied = await other.submit(await other.open(again.url), { action: 'deny' });
    expect(errorIn(denied.url)).toBe('access_denied');
    const nothing = await other.submit(await other.open((await client.ask()).url), { action: 'allow', scope: null });
    expect([nothing.status, nothing.html]).toEqual([422, expect.stringContaining('at least one permission')]);
  });

  it('cannot be given a project that the person is not in', async () => {
    const { id } = await service.newProject({ stranger: true });
    const asked = await client.ask();
    const page = await client.agree(person, asked, { all_projects: null, project: id });
    expect([page.status, page.html]).toEqual([422, expect.stringContaining('not a member')]);
  });

  it('is asked anew each time, since others can call themselves the same', async () => {
    expect((await person.open((await client.ask()).url)).title).toContain('Allow Command line');
  });

  it('asks for a login that is new with prompt=login, and knows who was logged out', async () => {
    const asked = await client.ask({ prompt: 'login' });
    const page = await person.open(asked.url);
    expect(page.title).toBe('Log in');
    const consent = await logIn(person, page);
    expect(consent.title).toContain('Allow');
    const switched = await person.submit(consent, { action: 'switch' });
    expect(switched.title).toBe('Log in');
    expect((await person.open((await client.ask()).url)).title).toBe('Log in');
    const silent = await person.open((await client.ask({ prompt: 'none' })).url);
    expect(errorIn(silent.url)).toBe('login_required');
  });
});

describe('the login page', () => {
  it('has the limits of the dashboard: wrong passwords, and codes of two-factor', async () => {
    const guest = await newPerson(service, 'two-factor@example.com', 'viewer');
    const login = await guest.open((await client.ask()).url);
    const wrong = await logIn(guest, login, 'not the password');
    expect([wrong.status, wrong.title]).toEqual([401, 'Log in']);
    expect(wrong.html).toContain('E-mail or password is wrong.');
    const dashboard = browser(service);
    await dashboard.logIn(guest.email);
    const { enrolTwoFactor } = await dashboard.data(
      'mutation ($p: String!) { enrolTwoFactor(password: $p) { secret } }',
      { p: PASSWORD },
    );
    const { TOTP, Secret } = await import('otpauth');
    const totp = new TOTP({ secret: Secret.fromBase32(enrolTwoFactor.secret) });
    const { confirmTwoFactor } = await dashboard.data(
      'mutation ($c: String!) { confirmTwoFactor(code: $c) { codes } }',
      { c: totp.generate() },
    );
    const asks = await logIn(guest, login);
    expect([asks.status, asks.html]).toEqual([401, expect.stringContaining('recovery code')]);
    const values = { email: guest.email, password: PASSWORD, action: 'login' };
    expect((await guest.submit(asks, { ...values, code: '000000' })).status).toBe(401);
    const consent = await guest.submit(asks, { ...values, code: confirmTwoFactor.codes[0] });
    expect(consent.title).toContain('Allow');
    const [session] = await service.sql('select user_agent from sessions where user_id = $1 order by id desc limit 1', [
      guest.id,
    ]);
    expect(session.user_agent).toBe('test browser');
  });

  it('takes no form of another site, and only its own browser', async () => {
    const guest = await newPerson(service, 'csrf@example.com', 'viewer');
    const page = await guest.open((await client.ask()).url);
    const consent = await logIn(guest, page);
    const forged = await guest.submit(consent, { action: 'allow' }, { origin: 'https://attacker.example' });
    expect([forged.status, forged.title]).toEqual([403, 'This did not work']);
    const other = await visitor(service).submit(consent, { action: 'allow' });
    expect([other.status, other.title]).toEqual([400, 'This page has expired']);
    expect(consent.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self' http://127.0.0.1:49152; " +
        "frame-ancestors 'none'; base-uri 'none'",
    );
    for (const { headers } of [page, consent, other])
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(consent.html).not.toMatch(/<script|javascript:/i);
  });

  it('lets nobody of a suspended account agree, and gives no new tokens', async () => {
    const guest = await newPerson(service, 'suspended@example.com', 'viewer');
    const tokens = await client.connect(guest);
    const page = await guest.open((await client.ask()).url);
    await service.sql(
      `update accounts set status = 'suspended' where id = (select account_id from users where id = $1)`,
      [guest.id],
    );
    expect(await refusal(client.refresh(tokens.refresh_token as string))).toBe('invalid_grant');
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    expect((await guest.submit(page, { action: 'allow' })).status).toBe(403);
  });
});

describe('refresh tokens', () => {
  it('rotate, with narrower scopes where asked, and the old access token lasts', async () => {
    const first = await client.connect(person);
    const second = await client.refresh(first.refresh_token as string);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(second.access_token).not.toBe(first.access_token);
    for (const { access_token } of [first, second]) expect((await me(access_token)).status).toBe(200);
  });

  const expectEnded = async (...all: { access_token: string }[]): Promise<void> => {
    for (const { access_token } of all) {
      const { status, body } = await me(access_token);
      expect([status, body.code]).toEqual([401, 'token_invalid']);
    }
  };

  it('whose answer was lost work again, and the lost answer ends everything where it turns up', async () => {
    const first = await client.connect(person);
    const lost = await client.refresh(first.refresh_token as string);
    const again = await client.refresh(first.refresh_token as string);
    const next = await client.refresh(again.refresh_token as string);
    expect((await me(next.access_token)).status).toBe(200);
    expect(await refusal(client.refresh(lost.refresh_token as string))).toBe('invalid_grant');
    expect(await refusal(client.refresh(next.refresh_token as string))).toBe('invalid_grant');
    await expectEnded(first, lost, again, next);
  });

  it('that come again after their successor was used, or a minute later, end everything', async () => {
    const first = await client.connect(person);
    const second = await client.refresh(first.refresh_token as string);
    const third = await client.refresh(second.refresh_token as string);
    expect(await refusal(client.refresh(first.refresh_token as string))).toBe('invalid_grant');
    await expectEnded(first, second, third);
    const late = await client.connect(person);
    const answer = await client.refresh(late.refresh_token as string);
    await service.sql(`update oauth_records set consumed_at = consumed_at - interval '61 seconds'`);
    expect(await refusal(client.refresh(late.refresh_token as string))).toBe('invalid_grant');
    await expectEnded(late, answer);
  });

  it('that come again while their successor is used give one line of tokens', async () => {
    const first = await client.connect(person);
    const second = await client.refresh(first.refresh_token as string);
    const answers = await Promise.allSettled([
      client.refresh(first.refresh_token as string),
      client.refresh(second.refresh_token as string),
    ]);
    const given = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    const alive = [];
    for (const { access_token } of given) if ((await me(access_token)).status === 200) alive.push(access_token);
    expect(alive.length).toBeLessThanOrEqual(1);
  });

  it.each([0, 7, 19])('that come twenty times at once do not end the connection: answer %i goes on', async (which) => {
    const { refresh_token } = await client.connect(person);
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.refresh(refresh_token as string)));
    for (const { access_token } of answers) expect((await me(access_token)).status).toBe(200);
    const next = await client.refresh(answers[which]?.refresh_token as string);
    expect((await me((await client.refresh(next.refresh_token as string)).access_token)).status).toBe(200);
    // Now it is a theft.
    expect(await refusal(client.refresh(answers[3]?.refresh_token as string))).toBe('invalid_grant');
    await expectEnded(...answers, next);
  });

  it('last 90 days from their last use, and codes a minute', async () => {
    const { access_token } = await client.connect(person);
    const id = (await me(access_token)).body.token.id as string;
    const rows = await service.sql(
      `select kind, round(extract(epoch from expires_at - now()) / 60)::int as minutes from oauth_records
        where grant_id = $1 and kind in ('RefreshToken', 'AccessToken') order by kind`,
      [id],
    );
    expect(rows).toEqual([
      { kind: 'AccessToken', minutes: 60 },
      { kind: 'RefreshToken', minutes: 90 * 24 * 60 },
    ]);
  });
});

describe('at rest', () => {
  it('no token, code or id of a browser is in the database', async () => {
    const asked = await client.ask();
    const back = await client.agree(person, asked);
    const code = new URL(back.url).searchParams.get('code') as string;
    const tokens = await client.redeem(asked, back);
    const rows = JSON.stringify(await service.sql('select * from oauth_records'));
    for (const secret of [code, tokens.access_token, tokens.refresh_token as string, asked.state])
      expect(rows).not.toContain(secret);
    for (const pair of (await person.cookies()).split('; ')) expect(rows).not.toContain(pair.split('=')[1]);
  });
});
