// Password verifiers (RFC 5803): the server never receives a password, so none can appear in its logs.
import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { DriverError } from '../../../core/driver';

// Same as the default of PostgreSQL (scram_iterations).
const iterations = 4096;

/** @throws DriverError invalid for a password that requires normalisation (RFC 4013) */
export async function verifierOf(password: string): Promise<string> {
  return derived(password, randomBytes(16), iterations);
}

/** Whether the verifier matches the password. */
export async function isVerifierOf(verifier: string | null, password: string): Promise<boolean> {
  const [, rounds = '', salt = ''] = /^SCRAM-SHA-256\$(\d+):([^$]+)\$/.exec(verifier ?? '') ?? [];
  if (verifier === null || salt === '') return false;
  const expected = Buffer.from(await derived(password, Buffer.from(salt, 'base64'), Number(rounds)));
  const given = Buffer.from(verifier);
  return expected.length === given.length && timingSafeEqual(expected, given);
}

async function derived(password: string, salt: Buffer, rounds: number): Promise<string> {
  if (!/^[\x21-\x7e]+$/.test(password))
    throw new DriverError('invalid', 'A password of the server contains characters other than printable ASCII.');
  const salted = await promisify(pbkdf2)(password, salt, rounds, 32, 'sha256');
  const key = (word: string) => createHmac('sha256', salted).update(word).digest();
  const stored = createHash('sha256').update(key('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${rounds}:${salt.toString('base64')}$${stored}:${key('Server Key').toString('base64')}`;
}
