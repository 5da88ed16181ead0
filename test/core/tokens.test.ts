import { mintSecret, mintToken, parseToken, sha256 } from '../../core/accounts/tokens';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe.each([
  ['personal', /^svc_[0-9A-Za-z]{39}$/],
  ['project', /^svc_proj_[0-9A-Za-z]{39}$/],
] as const)('%s keys', (kind, form) => {
  test('have their form, and parse gives kind and hash back', () => {
    for (let i = 0; i < 500; i += 1) {
      const { token, prefix, hash } = mintToken(kind);
      expect(token).toMatch(form);
      expect(prefix).toBe(token.slice(0, 12));
      expect(hash).toBe(sha256(token));
      expect(parseToken(token)).toEqual({ kind, hash });
    }
  });

  test('every single wrong character is noticed', () => {
    const { token } = mintToken(kind);
    for (let i = 0; i < token.length; i += 1) {
      for (const other of [...ALPHABET, '_', '-', ' ', '\n']) {
        if (token[i] !== other) expect(parseToken(token.slice(0, i) + other + token.slice(i + 1))).toBeNull();
      }
    }
  });

  test('swapped neighbours are noticed', () => {
    const { token } = mintToken(kind);
    for (let i = 0; i + 1 < token.length; i += 1) {
      const swapped = token.slice(0, i) + token.charAt(i + 1) + token.charAt(i) + token.slice(i + 2);
      if (swapped !== token) expect(parseToken(swapped)).toBeNull();
    }
  });
});

test('a key of one kind cannot be made into one of the other', () => {
  expect(parseToken(mintToken('personal').token.replace('svc_', 'svc_proj_'))).toBeNull();
  expect(parseToken(mintToken('project').token.replace('svc_proj_', 'svc_'))).toBeNull();
});

test.each([
  '',
  'svc_',
  'svc_proj_',
  'Bearer x',
  `svc_${'0'.repeat(39)}`,
  `svc_${'a'.repeat(38)}`,
  `svc_${'a'.repeat(40)}`,
  'x'.repeat(100_000),
])('%# is no key', (text) => {
  expect(parseToken(text)).toBeNull();
});

test('white space around a key makes it none', () => {
  const { token } = mintToken('personal');
  for (const text of [` ${token}`, `${token} `, `${token}\n`]) expect(parseToken(text)).toBeNull();
});

test('keys and secrets do not repeat', () => {
  expect(new Set(Array.from({ length: 1000 }, () => mintToken('personal').token)).size).toBe(1000);
  expect(new Set(Array.from({ length: 1000 }, () => mintSecret('ses_'))).size).toBe(1000);
  expect(mintSecret('ses_')).toMatch(/^ses_[\w-]{43}$/);
});

test('sha256 is that of FIPS 180', () => {
  expect(sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
