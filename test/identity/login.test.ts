import { startService, type TestService } from '../support/service';
import { withinOneMinute } from '../support/processes/within_one_minute';
import { browser, newBrowser, newUser, PASSWORD } from '../support/identity/browser';

let service: TestService;
let secure: TestService;
beforeAll(async () => {
  service = await startService();
  secure = await startService({ settings: { BASE_URL: 'https://platform.example.com', RATE_LIMIT_FAILED_AUTH: '3' } });
});
afterAll(async () => {
  await service.close();
  await secure.close();
});

test('the right password begins a session', async () => {
  const user = await newUser(service, 'right@example.com');
  const one = browser(service);
  const { data, headers } = await one.logIn('Right@Example.com');
  expect(data.login).toMatchObject({
    user: { id: user.id, email: user.email },
    session: { current: true },
    two_factor_enabled: false,
  });
  expect(headers.get('x-request-id')).toMatch(/^req_/);
  expect((await one.data('{ viewer { user { id } session { id } } }')).viewer.session.id).toBe(data.login.session.id);
});

test('the cookie is out of reach for scripts and other sites, and only its hash is stored', async () => {
  const one = await newBrowser(service, 'cookie@example.com');
  expect(one.setCookie).toMatch(/^platform_session=ses_[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/);
  const secret = one.cookie().split('=')[1] as string;
  const rows = await service.sql('select * from sessions');
  expect(JSON.stringify(rows)).not.toContain(secret);
});

test('with https the cookie is bound to the host and to TLS', async () => {
  const one = await newBrowser(secure, 'tls@example.com');
  expect(one.setCookie).toMatch(
    /^__Host-platform_session=ses_[\w-]{43}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect((await one.data('{ viewer { user { email } } }')).viewer.user.email).toBe('tls@example.com');
});

test('a wrong password, an unknown e-mail and a user without password are answered alike', async () => {
  await newUser(service, 'known@example.com');
  const [owner] = await service.sql(`select email from users where password_hash is null limit 1`);
  const one = browser(service);
  for (const email of ['known@example.com', 'unknown@example.com', owner.email]) {
    const { errors, headers } = await one.logIn(email, 'not the password');
    expect(errors?.[0]).toMatchObject({
      message: 'E-mail or password is wrong.',
      extensions: { code: 'credentials_invalid', status: 401 },
    });
    expect(headers.get('set-cookie')).toBeNull();
  }
});

test('attempts at one e-mail are limited, whoever makes them', async () => {
  await newUser(secure, 'guessed@example.com');
  const codes: string[] = [];
  await withinOneMinute(8_000);
  for (let turn = 0; turn < 4; turn += 1) {
    const { errors } = await browser(secure).run(
      'mutation ($input: LoginInput!) { login(input: $input) { user { id } } }',
      { input: { email: 'guessed@example.com', password: 'wrong' } },
    );
    codes.push(errors?.[0].extensions.code);
  }
  expect(codes).toContain('rate_limited');
  expect(codes[3]).toBe('rate_limited');
});

test('a session ends by logout, and its cookie is cleared', async () => {
  const one = await newBrowser(service, 'leaves@example.com');
  const cookie = one.cookie();
  expect((await one.data('mutation { logout }')).logout).toBe(true);
  expect(one.setCookie).toMatch(/^platform_session=; Max-Age=0;/);
  const { errors } = await service.graphql('{ viewer { user { id } } }', {}, { key: null, project: null, cookie });
  expect(errors?.[0].extensions).toMatchObject({ code: 'session_required', status: 401 });
});

test('sessions are listed and one can end another, but not those of others', async () => {
  const one = await newBrowser(service, 'two@example.com');
  const two = browser(service);
  await two.logIn('two@example.com');
  const other = await newBrowser(service, 'other@example.com');
  const { data } = (await one.data('{ listSessions(limit: 1) { data { id current address } next_cursor } }'))
    .listSessions;
  expect(data).toHaveLength(1);
  const all = (await one.data('{ listSessions { data { id current } next_cursor } }')).listSessions.data as {
    id: string;
    current: boolean;
  }[];
  expect(all.map(({ current }) => current)).toEqual([false, true]);
  const target = all.find(({ current }) => !current)?.id;
  expect((await other.refused('mutation ($id: ID!) { revokeSession(id: $id) }', { id: target })).code).toBe(
    'not_found',
  );
  await one.data('mutation ($id: ID!) { revokeSession(id: $id) }', { id: target });
  expect((await two.refused('{ viewer { user { id } } }')).code).toBe('session_required');
  await one.data('{ viewer { user { id } } }');
});

test('pages of sessions hold each one once', async () => {
  const one = await newBrowser(service, 'pages@example.com');
  await browser(service).logIn('pages@example.com');
  await browser(service).logIn('pages@example.com');
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const page: { data: { id: string }[]; next_cursor: string | null } = (
      await one.data(
        'query ($cursor: String) { listSessions(limit: 1, cursor: $cursor) { data { id } next_cursor } }',
        { cursor },
      )
    ).listSessions;
    seen.push(...page.data.map(({ id }) => id));
    cursor = page.next_cursor;
  } while (cursor);
  expect(seen).toHaveLength(3);
  expect(new Set(seen).size).toBe(3);
  expect([...seen].sort().reverse()).toEqual(seen);
  expect((await one.refused('{ listSessions(cursor: "made-up") { next_cursor } }')).code).toBe('invalid_cursor');
});

test('a session that is idle for a day, or too old, is over', async () => {
  const one = await newBrowser(service, 'idle@example.com');
  await service.sql(`update sessions set last_seen_at = now() - interval '25 hours' where user_id = $1`, [one.user.id]);
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  expect((await one.refused('{ viewer { user { id } } }')).code).toBe('session_required');
  await service.sql(
    `update sessions set last_seen_at = now(), expires_at = now() - interval '1 second' where user_id = $1`,
    [one.user.id],
  );
  expect((await one.refused('{ viewer { user { id } } }')).code).toBe('session_required');
});

const CHANGE = `mutation ($input: ChangePasswordInput!) {
  changePassword(input: $input) { revoked_keys { id } active_keys { id name } } }`;

test('a new password says which personal keys exist, and revokes them when asked to', async () => {
  const one = await newBrowser(service, 'keyed@example.com');
  const create = `mutation { createPersonalKey(input: { name: "CI", scopes: ["read"] }) { key { id } token } }`;
  const { key, token } = (await one.data(create)).createPersonalKey;
  const works = async (): Promise<number> =>
    (await service.call('GET', '/v2/me', { key: token, project: null })).status;
  const next = 'another good password';
  const kept = await one.data(CHANGE, { input: { password: PASSWORD, new_password: next } });
  expect(kept.changePassword).toEqual({ revoked_keys: [], active_keys: [{ id: key.id, name: 'CI' }] });
  expect(await works()).toBe(200);
  const input = { password: next, new_password: PASSWORD, revoke_personal_keys: true };
  const revoked = await one.data(CHANGE, { input });
  expect(revoked.changePassword).toEqual({ revoked_keys: [{ id: key.id }], active_keys: [] });
  expect(await works()).toBe(401);
});

test.each([PASSWORD, 'passwordpassword', 'xyxyxyxyxyxy', 'weak.person@example.com'])(
  'the new password %s is refused',
  async (new_password) => {
    const email = 'weak.person@example.com';
    const one = browser(service);
    if ((await one.logIn(email)).errors) await newBrowser(service, email);
    await one.logIn(email);
    const refused = await one.refused(CHANGE, { input: { password: PASSWORD, new_password } });
    expect(refused).toMatchObject({ code: 'validation_failed', extensions: { errors: [{ field: 'new_password' }] } });
  },
);

test('a new password ends the other sessions and is the one that counts', async () => {
  const one = await newBrowser(service, 'change@example.com');
  const two = browser(service);
  await two.logIn('change@example.com');
  const change = CHANGE;
  const wrong = await one.refused(change, { input: { password: 'wrong', new_password: 'another good password' } });
  expect(wrong).toMatchObject({ code: 'validation_failed', extensions: { errors: [{ field: 'password' }] } });
  const short = await one.refused(change, { input: { password: PASSWORD, new_password: 'short' } });
  expect(short.extensions.errors).toMatchObject([{ field: 'new_password', code: 'too_short' }]);
  await one.data(change, { input: { password: PASSWORD, new_password: 'another good password' } });
  await one.data('{ viewer { user { id } } }');
  expect((await two.refused('{ viewer { user { id } } }')).code).toBe('session_required');
  expect((await two.logIn('change@example.com')).errors?.[0].extensions.code).toBe('credentials_invalid');
  expect((await two.logIn('change@example.com', 'another good password')).errors).toBeUndefined();
  const [row] = await service.sql('select password_hash from users where id = $1', [one.user.id]);
  expect(row.password_hash).toMatch(/^scrypt\$131072\$8\$1\$/);
});

test('a request with the cookie from another site is refused, and so is a form', async () => {
  const one = await newBrowser(service, 'csrf@example.com');
  for (const headers of [
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: 'https://evil.example', 'Content-Type': 'text/plain' },
  ] as Record<string, string>[]) {
    const { status, body } = await one.run('mutation { logout }', {}, headers);
    expect([status, body.errors[0].extensions.code, body.data]).toEqual([403, 'csrf_rejected', undefined]);
  }
  const form = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { Cookie: one.cookie(), 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'query=mutation{logout}',
  });
  expect(form.status).toBe(415);
  expect(await form.text()).toContain('unsupported_media_type');
  await one.run('{ viewer { user { id } } }', {}, { Origin: service.url });
  expect((await one.data('{ viewer { user { email } } }')).viewer.user.email).toBe('csrf@example.com');
});

test('a suspended account gets no session, and its sessions do nothing', async () => {
  const one = await newBrowser(service, 'suspended@example.com');
  await service.sql(
    `update accounts set status = 'suspended' where id = (select account_id from users where id = $1)`,
    [one.user.id],
  );
  expect((await browser(service).logIn('suspended@example.com')).errors?.[0].extensions.code).toBe('account_suspended');
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  expect((await one.refused('{ viewer { user { id } } }')).code).toBe('account_suspended');
});

test('logins are in the activity, passwords are not', async () => {
  const one = await newBrowser(service, 'audited@example.com');
  const entries = await service.sql('select * from activity where actor_id = $1', [one.user.id]);
  expect(entries).toMatchObject([
    { action: 'session.created', resource_type: 'session', key_id: null, actor: { type: 'user', id: one.user.id } },
  ]);
  expect(JSON.stringify(await service.sql('select * from activity'))).not.toContain(PASSWORD);
});
