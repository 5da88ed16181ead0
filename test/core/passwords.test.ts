import { scryptSync } from 'node:crypto';
import { hashPassword, passwordProblem, verifyPassword } from '../../core/accounts/passwords';
import { storedPassword } from '../support/contract/password';

const PASSWORD = 'correct horse battery';

test('a password is verified against its hash, another one is not', async () => {
  const hash = await hashPassword(PASSWORD);
  expect(hash).toMatch(/^scrypt\$131072\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  expect(await verifyPassword(PASSWORD, hash)).toBe(true);
  expect(await verifyPassword(`${PASSWORD} `, hash)).toBe(false);
  expect(await verifyPassword('', hash)).toBe(false);
});

test('hashes of other costs stay valid', async () => {
  const salt = Buffer.from('0123456789abcdef');
  const hash = scryptSync(PASSWORD, salt, 32, { N: 1024, r: 8, p: 2 }).toString('base64url');
  expect(await verifyPassword(PASSWORD, `scrypt$1024$8$2$${salt.toString('base64url')}$${hash}`)).toBe(true);
});

test('the same letters typed another way are the same password', async () => {
  expect(
    await verifyPassword('cafe\u0301 cafe\u0301 cafe\u0301', await hashPassword('caf\u00e9 caf\u00e9 caf\u00e9')),
  ).toBe(true);
});

test('an unknown user takes the work of a known one and is refused', async () => {
  const before = process.cpuUsage().user;
  expect(await verifyPassword(PASSWORD, null)).toBe(false);
  // The work itself takes over 100 ms on any machine of today; an early return none.
  expect(process.cpuUsage().user - before).toBeGreaterThan(20_000);
});

test('a damaged hash is a mistake of ours, not a wrong password', async () => {
  await expect(verifyPassword(PASSWORD, 'bcrypt$x')).rejects.toThrow('malformed');
});

test('a flood of logins is bounded, and the rest is served', async () => {
  const cheap = storedPassword(PASSWORD);
  const results = await Promise.allSettled(Array.from({ length: 200 }, () => verifyPassword(PASSWORD, cheap)));
  const served = results.filter((result) => result.status === 'fulfilled' && result.value);
  const refused = results.filter((result) => result.status === 'rejected');
  expect(served).toHaveLength(52);
  expect(refused).toHaveLength(148);
  expect(refused[0]).toMatchObject({ reason: { code: 'service_unavailable', headers: { 'Retry-After': '10' } } });
  expect(await verifyPassword(PASSWORD, cheap)).toBe(true);
});

test.each([
  ['', 'too_short'],
  ['a'.repeat(11), 'too_short'],
  ['\u{1f600}'.repeat(11), 'too_short'],
  ['twelve chars', null],
  [`${'\u{1f600}'.repeat(199)}x`, null],
  ['a'.repeat(201), 'too_long'],
])('rule %#', (password, code) => {
  expect(passwordProblem(password)?.code ?? null).toBe(code);
});

test.each([
  ['PasswordPassword', 'common'],
  ['qwertyuiop[]', 'common'],
  ['1234567890123', 'common'],
  ['Correct-Horse-Battery-Staple', 'common'],
  ['aaaaaaaaaaaa', 'repeats'],
  ['abcdabcdabcd', 'repeats'],
  ['ada.lovelace@example.com', 'e-mail'],
  ['Ada Lovelace 1815', 'e-mail'],
  ['ada.lovelace!!', 'e-mail'],
])('%s is refused because of what it is', (password, word) => {
  expect(passwordProblem(password, ['ada.lovelace@example.com', 'Ada Lovelace'])).toMatchObject({
    code: 'invalid_format',
    detail: expect.stringContaining(word),
  });
});

test.each(['correct horse battery', 'lovelace wrote notes', 'abcdabcdabcd and more'])('%s is accepted', (password) => {
  expect(passwordProblem(password, ['ada.lovelace@example.com', 'Ada Lovelace', 'A'])).toBeNull();
});
