// The hash of a password as it is stored, made with little work: the real amount is the matter of
// test/core/passwords.test.ts.
import { scryptSync } from 'node:crypto';

export function storedPassword(password: string): string {
  const salt = Buffer.from('0123456789abcdef');
  const cost = { N: 1024, r: 8, p: 1 };
  return [
    'scrypt',
    cost.N,
    cost.r,
    cost.p,
    salt.toString('base64url'),
    scryptSync(password, salt, 32, cost).toString('base64url'),
  ].join('$');
}
