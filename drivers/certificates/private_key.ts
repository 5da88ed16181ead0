import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';

const generate = promisify(generateKeyPair);

/** A new private key, ECDSA P-256 as PKCS #8 PEM: small, and supported by all browsers and authorities. */
export async function newPrivateKey(): Promise<string> {
  const { privateKey } = await generate('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
