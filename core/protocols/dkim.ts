// DKIM keys (RFC 6376): RSA-2048, and in addition Ed25519 (RFC 8463), which some receivers do not support.
import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { randomWord } from '../ids';

export type DkimAlgorithm = 'rsa' | 'ed25519';

/** The public part of a key. `next`: it is used once its record is found in the DNS. */
export interface DkimRecord {
  selector: string;
  algorithm: DkimAlgorithm;
  role: 'current' | 'next';
  /** Value of the TXT record. */
  value: string;
}

export interface DkimKey extends DkimRecord {
  /** PKCS #8 in PEM. */
  private_key: string;
}

const makePair = promisify(generateKeyPair);
const RSA_BITS = 2048;
const SELECTOR_LETTERS = 'abcdefghjkmnpqrstvwxyz23456789';
const SELECTOR_LENGTH = 8;
/** DER prefix of the 32 bytes that RFC 8463 §4 publishes. */
const ED25519_PREFIX_BYTES = 12;

/**
 * Creates one key per algorithm, with selectors that cannot be guessed: publishing them proves ownership of the domain.
 */
export async function newDkimKeys(role: DkimRecord['role']): Promise<DkimKey[]> {
  const selector = newSelector();
  const [rsa, ed25519] = await Promise.all([takeRsaPair(), makePair('ed25519', undefined)]);
  return [keyOf(selector, 'rsa', rsa, role), keyOf(`${selector}-e`, 'ed25519', ed25519, role)];
}

type Pair = Awaited<ReturnType<typeof makeRsaPair>>;

/** A key pair generated in advance. */
let spare: Promise<Pair> | null = null;

/** An RSA key takes 50 to 500 ms of CPU time: only the first domain of a process waits for it. */
async function takeRsaPair(): Promise<Pair> {
  const taken = spare;
  spare = null;
  try {
    return await (taken ?? makeRsaPair());
  } finally {
    spare ??= makeRsaPair();
    spare.catch(() => (spare = null));
  }
}

function makeRsaPair(): Promise<{ publicKey: KeyObject; privateKey: KeyObject }> {
  return makePair('rsa', { modulusLength: RSA_BITS });
}

/** The public part of a key. */
export function dkimRecordOf({ selector, algorithm, role, value }: DkimKey): DkimRecord {
  return { selector, algorithm, role, value };
}

/** Whether a TXT record publishes the same key, with tags in any order and any white space (RFC 6376 §3.6.1). */
export function publishesKey(observed: string, wanted: string): boolean {
  const [found, expected] = [tagsOf(observed), tagsOf(wanted)];
  return found.get('p') === expected.get('p') && (found.get('k') ?? 'rsa') === (expected.get('k') ?? 'rsa');
}

function tagsOf(text: string): Map<string, string> {
  return new Map(
    text.split(';').map((tag) => {
      const at = tag.indexOf('=');
      return [tag.slice(0, at).trim(), tag.slice(at + 1).replace(/\s+/g, '')];
    }),
  );
}

function keyOf(
  selector: string,
  algorithm: DkimAlgorithm,
  pair: { publicKey: KeyObject; privateKey: KeyObject },
  role: DkimRecord['role'],
): DkimKey {
  const private_key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  return { selector, algorithm, role, value: recordValue(algorithm, createPublicKey(private_key)), private_key };
}

function recordValue(algorithm: DkimAlgorithm, key: KeyObject): string {
  const der = key.export({ type: 'spki', format: 'der' });
  const shown = algorithm === 'rsa' ? der : der.subarray(ED25519_PREFIX_BYTES);
  return `v=DKIM1; k=${algorithm}; p=${shown.toString('base64')}`;
}

function newSelector(): string {
  return `p${randomWord(SELECTOR_LETTERS, SELECTOR_LENGTH - 1)}`;
}
