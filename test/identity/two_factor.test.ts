import { Secret, TOTP } from 'otpauth';
import { startService, type TestService } from '../support/service';
import { browser, newBrowser, PASSWORD, type Browser } from '../support/identity/browser';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const ENROL = 'mutation ($password: String!) { enrolTwoFactor(password: $password) { secret otpauth_url } }';
const CONFIRM = 'mutation ($code: String!) { confirmTwoFactor(code: $code) { codes } }';
const DISABLE = 'mutation ($password: String!, $code: String!) { disableTwoFactor(password: $password, code: $code) }';
const REGENERATE = 'mutation ($code: String!) { regenerateRecoveryCodes(code: $code) { codes } }';

/** @param offset steps from now */
function codeOf(secret: string, offset = 0): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + offset * 30_000 });
}

/** Lets codes of the present step be used again, as if time had passed. */
async function passTime(email: string): Promise<void> {
  await service.sql('update users set totp_last_step = 0, code_failures = 0, code_retry_at = null where email = $1', [
    email,
  ]);
}

async function enrolled(email: string): Promise<{ one: Browser; secret: string; codes: string[] }> {
  const one = await newBrowser(service, email);
  const { secret } = (await one.data(ENROL, { password: PASSWORD })).enrolTwoFactor;
  const { codes } = (await one.data(CONFIRM, { code: codeOf(secret) })).confirmTwoFactor;
  return { one, secret, codes };
}

const codeOfRefusal = (answer: Awaited<ReturnType<Browser['logIn']>>): string | undefined =>
  answer.errors?.[0].extensions.code;

test('enrolment needs the password, and counts only when it is confirmed', async () => {
  const email = 'enrol@example.com';
  const one = await newBrowser(service, email);
  expect((await one.refused(ENROL, { password: 'wrong' })).extensions.errors).toMatchObject([{ field: 'password' }]);
  expect((await one.refused(CONFIRM, { code: '000000' })).code).toBe('invalid_state');
  const { secret, otpauth_url } = (await one.data(ENROL, { password: PASSWORD })).enrolTwoFactor;
  expect(otpauth_url).toMatch(/^otpauth:\/\/totp\/127\.0\.0\.1:enrol%40example\.com\?issuer=127\.0\.0\.1&secret=/);
  expect(otpauth_url).toContain(secret);
  expect(codeOfRefusal(await browser(service).logIn(email))).toBeUndefined();
  const wrong = codeOf(secret) === '123456' ? '654321' : '123456';
  expect((await one.refused(CONFIRM, { code: wrong })).extensions.errors).toMatchObject([{ field: 'code' }]);
  const { codes } = (await one.data(CONFIRM, { code: codeOf(secret) })).confirmTwoFactor;
  expect(new Set(codes).size).toBe(10);
  expect((await one.data('{ viewer { two_factor_enabled recovery_codes_left } }')).viewer).toEqual({
    two_factor_enabled: true,
    recovery_codes_left: 10,
  });
  expect((await one.refused(ENROL, { password: PASSWORD })).code).toBe('already_exists');
  expect((await one.refused(CONFIRM, { code: codeOf(secret, 1) })).code).toBe('invalid_state');
});

test('a login then needs a code, each one once', async () => {
  const email = 'codes@example.com';
  const { secret } = await enrolled(email);
  const one = browser(service);
  const missing = await one.logIn(email);
  expect(missing.errors?.[0].extensions).toMatchObject({ code: 'two_factor_required', status: 401 });
  expect(missing.headers.get('set-cookie')).toBeNull();
  expect(codeOfRefusal(await one.logIn(email, 'wrong password', codeOf(secret)))).toBe('credentials_invalid');
  // used by the confirmation
  expect(codeOfRefusal(await one.logIn(email, PASSWORD, codeOf(secret)))).toBe('two_factor_required');
  await passTime(email);
  const code = codeOf(secret);
  expect((await one.logIn(email, PASSWORD, `${code.slice(0, 3)} ${code.slice(3)}`)).data.login.two_factor_enabled).toBe(
    true,
  );
  expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, code))).toBe('two_factor_required');
  expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, codeOf(secret, -1)))).toBe('two_factor_required');
});

test('of the same code sent twice at once, one gets in', async () => {
  const email = 'race@example.com';
  const { secret } = await enrolled(email);
  await passTime(email);
  const code = codeOf(secret);
  const answers = await Promise.all(Array.from({ length: 4 }, () => browser(service).logIn(email, PASSWORD, code)));
  expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
});

test('clocks may differ by one step, not by more', async () => {
  const email = 'clock@example.com';
  const { secret } = await enrolled(email);
  for (const offset of [-3, 3]) {
    await passTime(email);
    expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, codeOf(secret, offset)))).toBe(
      'two_factor_required',
    );
  }
  await passTime(email);
  // A step may end between here and there: the code ahead is then the present one.
  expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, codeOf(secret, 1)))).toBeUndefined();
});

test('after five wrong codes even the right one has to wait', async () => {
  const email = 'guess@example.com';
  const { secret } = await enrolled(email);
  await passTime(email);
  const codes = new Set([-1, 0, 1, 2].map((offset) => codeOf(secret, offset)));
  const wrong = ['111111', '222222', '333333', '444444', '555555', '666666'].filter((code) => !codes.has(code));
  for (const code of wrong.slice(0, 5))
    expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, code))).toBe('two_factor_required');
  const refused = await browser(service).logIn(email, PASSWORD, codeOf(secret));
  expect(codeOfRefusal(refused)).toBe('rate_limited');
  await service.sql(`update users set code_retry_at = now() - interval '1 second' where email = $1`, [email]);
  expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, codeOf(secret)))).toBeUndefined();
  const [row] = await service.sql('select code_failures, code_retry_at from users where email = $1', [email]);
  expect(row).toEqual({ code_failures: 0, code_retry_at: null });
});

test('a recovery code replaces the authenticator once', async () => {
  const email = 'recovery@example.com';
  const { codes } = await enrolled(email);
  const one = browser(service);
  expect((await one.logIn(email, PASSWORD, codes[0])).data.login.recovery_codes_left).toBe(9);
  expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, codes[0]))).toBe('two_factor_required');
  expect(
    codeOfRefusal(
      await browser(service).logIn(email, PASSWORD, (codes[1] as string).toUpperCase().replaceAll('-', ' ')),
    ),
  ).toBeUndefined();
});

test('new recovery codes need a code and void the old ones', async () => {
  const email = 'regenerate@example.com';
  const { one, secret, codes } = await enrolled(email);
  expect((await one.refused(REGENERATE, { code: codeOf(secret) })).extensions.errors).toMatchObject([
    { field: 'code' },
  ]); // used before
  await passTime(email);
  const fresh = (await one.data(REGENERATE, { code: codeOf(secret) })).regenerateRecoveryCodes.codes as string[];
  expect(fresh).toHaveLength(10);
  expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, codes[0]))).toBe('two_factor_required');
  expect(codeOfRefusal(await browser(service).logIn(email, PASSWORD, fresh[0]))).toBeUndefined();
});

test('turning it off needs password and code, and clears everything', async () => {
  const email = 'disable@example.com';
  const { one, codes } = await enrolled(email);
  expect((await one.refused(DISABLE, { password: 'wrong', code: codes[0] })).extensions.errors).toMatchObject([
    { field: 'password' },
  ]);
  expect((await one.refused(DISABLE, { password: PASSWORD, code: '1' })).extensions.errors).toMatchObject([
    { field: 'code' },
  ]);
  await one.data(DISABLE, { password: PASSWORD, code: codes[0] });
  expect(codeOfRefusal(await browser(service).logIn(email))).toBeUndefined();
  const [row] = await service.sql('select totp_secret, totp_confirmed_at from users where email = $1', [email]);
  expect(row).toEqual({ totp_secret: null, totp_confirmed_at: null });
  expect((await one.refused(DISABLE, { password: PASSWORD, code: codes[1] })).code).toBe('invalid_state');
});

test('neither the secret nor a recovery code stands in the database', async () => {
  const { secret, codes } = await enrolled('stored@example.com');
  const stored = JSON.stringify([
    await service.sql('select * from users'),
    await service.sql('select * from recovery_codes'),
    await service.sql('select * from activity'),
  ]);
  for (const text of [secret, ...codes, ...codes.map((code) => code.replaceAll('-', ''))])
    expect(stored.toLowerCase()).not.toContain(text.toLowerCase());
});
