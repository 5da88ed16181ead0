// DKIM signatures (RFC 6376, RFC 8463), relaxed/relaxed. Visible header fields are oversigned, so that no further field
// can be added.
import { createHash, createPrivateKey, sign, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { DkimAlgorithm } from '../../../core/protocols/dkim';
import type { HeaderField } from './header';

export interface SigningIdentity {
  domain: string;
  selector: string;
  algorithm: DkimAlgorithm;
  /** PKCS #8, PEM. */
  private_key: string;
}

const SIGNED = [
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'subject', 'date', 'message-id', 'in-reply-to', 'references'],
  ...['mime-version', 'content-type', 'content-transfer-encoding', 'content-id', 'content-disposition'],
  ...['list-id', 'list-unsubscribe', 'list-unsubscribe-post', 'list-help', 'auto-submitted', 'feedback-id'],
];
/** RFC 6376 §8.15. */
const OVERSIGNED = new Set([
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'subject', 'date', 'message-id'],
  ...['mime-version', 'content-type', 'list-unsubscribe', 'list-unsubscribe-post'],
]);
const NAME: Record<DkimAlgorithm, string> = { rsa: 'rsa-sha256', ed25519: 'ed25519-sha256' };
/** In the thread pool: an RSA signature takes as long as the rest of the processing of a message. */
const signInBackground = promisify(sign);
const FOLD_CHARACTERS = 70;
const KEYS_MAX = 1000;

/** Parsing a key takes half as long as a signature. */
const parsed = new Map<string, KeyObject>();

/**
 * The DKIM-Signature field with its line end.
 * @param bodyHash of the relaxed body, base64
 */
export async function dkimSignature(
  fields: readonly HeaderField[],
  bodyHash: string,
  identity: SigningIdentity,
  at: Date,
): Promise<string> {
  const { names, values } = signedFields(fields);
  const tags = [
    `v=1; a=${NAME[identity.algorithm]}; c=relaxed/relaxed; d=${identity.domain}; s=${identity.selector};`,
    ` t=${Math.floor(at.getTime() / 1000)}; bh=${bodyHash};`,
    ` h=${folded(names.join(':'), ':')};`,
    ' b=',
  ];
  const unsigned = `DKIM-Signature: ${tags.join('\r\n')}`;
  const data = Buffer.from(values.join('') + relaxed('dkim-signature', unsigned), 'latin1');
  return `${unsigned}${folded(await signatureOf(data, identity), '')}\r\n`;
}

/**
 * From the last field upwards, as verifiers count (RFC 6376 §5.4.2); an additional name signs the absence of a field.
 */
function signedFields(fields: readonly HeaderField[]): { names: string[]; values: string[] } {
  const names: string[] = [];
  const values: string[] = [];
  for (const name of SIGNED) {
    for (const { raw } of fields.filter((field) => field.name === name).reverse()) {
      names.push(name);
      values.push(`${relaxed(name, raw)}\r\n`);
    }
    if (OVERSIGNED.has(name)) names.push(name);
  }
  return { names, values };
}

function relaxed(name: string, raw: string): string {
  const value = raw.slice(raw.indexOf(':') + 1).replace(/\r\n/g, '');
  return `${name}:${value.replace(/[ \t]+/g, ' ').trim()}`;
}

/** RFC 8463 §3: Ed25519 signs the hash of the data. */
async function signatureOf(data: Buffer, { algorithm, private_key }: SigningIdentity): Promise<string> {
  const key = keyOf(private_key);
  if (algorithm === 'rsa') return (await signInBackground('sha256', data, key)).toString('base64');
  return sign(null, createHash('sha256').update(data).digest(), key).toString('base64');
}

function keyOf(pem: string): KeyObject {
  const known = parsed.get(pem);
  if (known) return known;
  if (parsed.size >= KEYS_MAX) parsed.clear();
  const key = createPrivateKey(pem);
  parsed.set(pem, key);
  return key;
}

function folded(text: string, after: string): string {
  if (!after) return (text.match(new RegExp(`.{1,${FOLD_CHARACTERS}}`, 'g')) ?? []).join('\r\n ');
  let line = 0;
  return text
    .split(after)
    .map((word, index) => {
      const wraps = line + word.length > FOLD_CHARACTERS;
      line = wraps ? word.length : line + word.length + 1;
      return index === 0 ? word : `${after}${wraps ? '\r\n  ' : ''}${word}`;
    })
    .join('');
}
