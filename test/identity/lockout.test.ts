// Strangers who guess must not lock out those who are right.
import { verifyPassword } from '../../core/accounts/passwords';
import { storedPassword } from '../support/contract/password';
import { withinOneMinute } from '../support/processes/within_one_minute';
import { LOGIN, newBrowser, newUser, PASSWORD, type Browser } from '../support/identity/browser';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

const ALLOWED = 3;

let service: TestService;
beforeAll(async () => {
  service = await startService({
    settings: { RATE_LIMIT_FAILED_AUTH: String(ALLOWED), TRUST_PROXY: '1', SMTP_PORTS: String(await freePort()) },
  });
});
afterAll(() => service.close());
// All limits are of a minute.
beforeEach(() => withinOneMinute(20_000), 60_000);

const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });

/** The outcome of a login from an address, with the cookies of a browser or none. */
async function logIn(email: string, address: string, password = PASSWORD, cookie = '', code?: string): Promise<string> {
  const variables = { input: { email, password, ...(code !== undefined && { code }) } };
  const options = { key: null, project: null, cookie, headers: from(address) };
  const { errors } = await service.graphql(LOGIN, variables, options);
  return errors?.[0].extensions.code ?? 'ok';
}

async function guess(email: string, address: string, times: number): Promise<string[]> {
  const codes: string[] = [];
  for (let turn = 0; turn < times; turn += 1) codes.push(await logIn(email, address, 'a wrong password'));
  return codes;
}

test('guesses from one address do not lock out the person at another one', async () => {
  await newUser(service, 'elsewhere@example.com');
  expect((await guess('elsewhere@example.com', '198.51.100.1', ALLOWED + 3)).at(-1)).toBe('rate_limited');
  expect(await logIn('elsewhere@example.com', '198.51.100.2')).toBe('ok');
});

test('guesses at one person do not lock out others behind the same address', async () => {
  await newUser(service, 'guessed-at@example.com');
  await newUser(service, 'neighbour@example.com');
  await guess('guessed-at@example.com', '198.51.100.10', ALLOWED + 3);
  expect(await logIn('neighbour@example.com', '198.51.100.10')).toBe('ok');
});

test('one address has a limit over all e-mails, and IPv6 counts as a /64', async () => {
  const codes: string[] = [];
  for (let turn = 0; turn < ALLOWED * 5; turn += 1)
    codes.push(await logIn(`spray${turn}@example.com`, `2001:db8:1:2::${turn.toString(16)}`, 'wrong'));
  expect(codes.indexOf('rate_limited')).toBe(ALLOWED * 4);
  expect(await logIn('spray@example.com', '2001:db8:1:3::1', 'wrong')).toBe('credentials_invalid');
});

test('an address with a port, as some proxies send it, is the same client', async () => {
  const codes: string[] = [];
  for (let port = 1; port <= ALLOWED + 1; port += 1)
    codes.push(await logIn('port@example.com', `198.51.100.60:${port}`, 'wrong'));
  for (let port = 1; port <= ALLOWED + 1; port += 1)
    codes.push(await logIn('port6@example.com', `[2001:db8:9::1]:${port}`, 'wrong'));
  expect(codes.filter((code) => code === 'rate_limited')).toHaveLength(2);
});

describe('guesses from many addresses', () => {
  const flood = async (email: string): Promise<string[]> => {
    const codes: string[] = [];
    for (let host = 1; host <= 11; host += 1) codes.push(...(await guess(email, `203.0.113.${host}`, ALLOWED)));
    return codes;
  };

  test('are bounded, and a browser that has been there before passes', async () => {
    const known = await newBrowser(service, 'flooded@example.com');
    expect(await flood('flooded@example.com')).toContain('rate_limited');
    expect(await logIn('flooded@example.com', '198.51.100.20')).toBe('rate_limited');
    expect(await logIn('flooded@example.com', '203.0.113.1', PASSWORD, known.cookie())).toBe('ok');
  });

  test('do not stop it after it has logged out, or was idle for days', async () => {
    const idle = await newBrowser(service, 'idle@example.com');
    const left = await newBrowser(service, 'left@example.com');
    const { headers } = await left.run('mutation { logout }');
    const known = headers.getSetCookie().find((line) => line.startsWith('platform_known='));
    expect(known).toMatch(/; Max-Age=15552000; Path=\/; HttpOnly; SameSite=Lax$/);
    await service.sql(`update sessions set last_seen_at = now() - interval '5 days' where user_id = $1`, [
      idle.user.id,
    ]);
    await flood('left@example.com');
    const cookie = known?.split(';')[0] as string;
    expect(await logIn('left@example.com', '203.0.113.1', PASSWORD, cookie)).toBe('ok');
    // Of another person it says nothing, and what was changed says nothing at all.
    await flood('idle@example.com');
    expect(await logIn('idle@example.com', '198.51.100.21', PASSWORD, cookie)).toBe('rate_limited');
    expect(await logIn('left@example.com', '203.0.113.1', PASSWORD, `${cookie.slice(0, -2)}AA`)).toBe('rate_limited');
    expect(await logIn('idle@example.com', '198.51.100.21', PASSWORD, idle.cookie())).toBe('ok');
  }, 60_000);

  test('with the cookie of a known browser have its own limit', async () => {
    const known = await newBrowser(service, 'stolen@example.com');
    const codes: string[] = [];
    for (let turn = 0; turn <= ALLOWED; turn += 1)
      codes.push(await logIn('stolen@example.com', `203.0.113.${turn}`, 'wrong', known.cookie()));
    expect(codes).toEqual([...Array<string>(ALLOWED).fill('credentials_invalid'), 'rate_limited']);
  });

  test('do not keep anybody from a new password: the answer is the same, and mails of the hour were sent', async () => {
    const user = await newUser(service, 'forgetful@example.com');
    const ask = async (address: string): Promise<unknown> => {
      const query = 'mutation ($input: RequestPasswordResetInput!) { requestPasswordReset(input: $input) }';
      const options = { key: null, project: null, headers: from(address) };
      const { data, errors } = await service.graphql(query, { input: { email: user.email } }, options);
      return errors?.[0].extensions.code ?? data.requestPasswordReset;
    };
    const written = (): Promise<{ count: number }[]> =>
      service.sql('select count(*)::int as count from email_outbox where recipients @> array[$1]', [user.email]);
    for (let host = 1; host <= ALLOWED; host += 1) expect(await ask(`203.0.113.${host}`)).toBe(true);
    expect(await written()).toEqual([{ count: ALLOWED }]);
    expect(await ask('198.51.100.30')).toBe(true);
    expect(await written()).toEqual([{ count: ALLOWED }]);
  });
});

describe('two-factor codes', () => {
  const lock = async (person: Browser): Promise<void> => {
    const { secret } = (await person.data(`mutation { enrolTwoFactor(password: "${PASSWORD}") { secret } }`))
      .enrolTwoFactor;
    expect(secret).toBeTruthy();
  };

  test('of somebody who has the password lock out neither a known browser nor a recovery code', async () => {
    const person = await newBrowser(service, 'second@example.com');
    await lock(person);
    const [{ hash }] = await service.sql(`select encode(sha256($1::bytea), 'hex') as hash`, [
      Buffer.from(`${person.user.id}:abcdabcdabcdabcd`),
    ]);
    await service.sql('update users set totp_confirmed_at = now() where id = $1', [person.user.id]);
    await service.sql('insert into recovery_codes (user_id, hash) values ($1, $2)', [person.user.id, hash]);
    const codes: string[] = [];
    for (let host = 1; host <= 7; host += 1)
      codes.push(await logIn('second@example.com', `203.0.113.${host}`, PASSWORD, '', '000000'));
    expect(codes.slice(-2)).toEqual(['rate_limited', 'rate_limited']);
    expect(await logIn('second@example.com', '198.51.100.40', PASSWORD, person.cookie(), '000000')).toBe(
      'two_factor_required',
    );
    expect(await logIn('second@example.com', '198.51.100.40', PASSWORD, '', 'abcd-abcd-abcd-abcd')).toBe('ok');
  });
});

test('a flood of strangers does not keep those waiting who are known', async () => {
  const hash = storedPassword(PASSWORD);
  const order: string[] = [];
  const strangers = Array.from({ length: 100 }, (_, turn) =>
    verifyPassword('wrong', hash, `198.51.100.${turn % 5}`).then(
      () => order.push('stranger'),
      () => order.push('turned away'),
    ),
  );
  const same = Array.from({ length: 30 }, () => verifyPassword('wrong', hash, '192.0.2.1').catch(() => 'turned away'));
  expect(await verifyPassword(PASSWORD, hash)).toBe(true);
  expect(order.filter((one) => one === 'stranger').length).toBeLessThan(6);
  await Promise.all([...strangers, ...same]);
}, 60_000);
