// Encryption with keys of clients (SSE-C; Amazon S3 User Guide, "Using server-side encryption with customer-provided
// keys"). A key is used during its request, and is neither stored nor logged; stored is a salted hash that recognises
// it.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ObjectMetadata } from '../../../core/protocols/objects';
import type { Encrypted } from '../files/blobs';
import { S3Error } from '../errors';
import { headerOf, type S3Request } from '../request';

const PREFIX = 'x-amz-server-side-encryption-customer-';
const SOURCE_PREFIX = 'x-amz-copy-source-server-side-encryption-customer-';
const PARTS = ['algorithm', 'key', 'key-md5'];
export const CUSTOMER_HEADERS = PARTS.map((part) => PREFIX + part);
export const SOURCE_CUSTOMER_HEADERS = PARTS.map((part) => SOURCE_PREFIX + part);
const KEY_BYTES = 32;
const SALT_BYTES = 16;

interface CustomerKey {
  key: Buffer;
  /** Base64, as the client has sent it. */
  md5: string;
}

/** The key in the headers of a request; null without one. @throws S3Error */
export function customerKeyOf(request: S3Request, of: 'object' | 'source' = 'object'): CustomerKey | null {
  const prefix = of === 'object' ? PREFIX : SOURCE_PREFIX;
  const [algorithm, text, md5] = PARTS.map((part) => headerOf(request, prefix + part));
  if (algorithm === undefined && text === undefined && md5 === undefined) return null;
  const { isSecure, isLocal } = request.client;
  if (!isSecure && !isLocal)
    throw new S3Error(
      'InvalidRequest',
      'Requests with customer-provided keys must be made over a secure connection. A proxy with TLS before the ' +
        'endpoint has to be counted in TRUST_PROXY, and to send X-Forwarded-Proto.',
    );
  if (algorithm === undefined)
    throw new S3Error('InvalidArgument', 'Requests with a customer-provided key must name a valid algorithm.');
  if (algorithm !== 'AES256') throw new S3Error('InvalidEncryptionAlgorithmError');
  if (text === undefined)
    throw new S3Error('InvalidArgument', 'Requests with a customer-provided key must have an appropriate secret key.');
  if (md5 === undefined)
    throw new S3Error('InvalidArgument', 'Requests with a customer-provided key must have the MD5 of the secret key.');
  const key = Buffer.from(text, 'base64');
  if (key.length !== KEY_BYTES || key.toString('base64') !== text)
    throw new S3Error('InvalidArgument', 'The secret key was invalid for the specified algorithm.');
  if (createHash('md5').update(key).digest('base64') !== md5)
    throw new S3Error(
      'InvalidArgument',
      'The calculated MD5 hash of the key did not match the hash that was provided.',
    );
  return { key, md5 };
}

/** Encryption of the object that a request creates. @throws S3Error */
export function encryptionOfRequest(request: S3Request): Pick<ObjectMetadata, 'encryption' | 'customer_key'> {
  const isManaged = headerOf(request, 'x-amz-server-side-encryption') !== undefined;
  const customer = customerKeyOf(request);
  if (isManaged && customer)
    throw new S3Error('InvalidArgument', 'Encryption with a customer-provided key has no other encryption beside it.');
  if (customer) return { customer_key: hashOf(customer.key, randomBytes(SALT_BYTES)) };
  return isManaged ? { encryption: 'AES256' } : {};
}

/**
 * How the files of an object are to be opened.
 * @throws S3Error where the request has no key for an encrypted object, another one, or one for an object without
 */
export function encryptionOf(
  { encryption, customer_key }: ObjectMetadata,
  request: S3Request,
  of: 'object' | 'source' = 'object',
): Encrypted {
  const customer = customerKeyOf(request, of);
  if (!customer_key) {
    if (!customer) return encryption;
    throw new S3Error('InvalidRequest', 'The encryption parameters are not applicable to this object.');
  }
  if (!customer)
    throw new S3Error(
      'InvalidRequest',
      'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to ' +
        'retrieve the object.',
    );
  if (!isKeyOf(customer_key, customer.key)) throw new S3Error('AccessDenied', 'The object has another encryption key.');
  return customer.key;
}

/** How a file of an upload or of a new object is to be written. @throws S3Error */
export function encryptionOfPart({ encryption, customer_key }: ObjectMetadata, request: S3Request): Encrypted {
  const customer = customerKeyOf(request);
  if (!customer_key && !customer) return encryption;
  if (!customer_key)
    throw new S3Error('InvalidRequest', 'The upload did not request encryption with a customer-provided key.');
  if (!customer)
    throw new S3Error(
      'InvalidRequest',
      'The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate ' +
        'encryption parameters.',
    );
  if (!isKeyOf(customer_key, customer.key))
    throw new S3Error('InvalidRequest', 'The provided encryption parameters did not match the ones used originally.');
  return customer.key;
}

/** Headers of a response about an object with such a key. */
export function customerKeyHeaders(request: S3Request, { customer_key }: ObjectMetadata): Record<string, string> {
  const md5 = headerOf(request, `${PREFIX}key-md5`);
  return customer_key && md5 !== undefined ? { [`${PREFIX}algorithm`]: 'AES256', [`${PREFIX}key-MD5`]: md5 } : {};
}

function hashOf(key: Buffer, salt: Buffer): string {
  return `${salt.toString('base64url')}.${createHmac('sha256', salt).update(key).digest('base64url')}`;
}

function isKeyOf(stored: string, key: Buffer): boolean {
  const [expected, given] = [stored, hashOf(key, Buffer.from(stored.split('.')[0] ?? '', 'base64url'))].map(
    Buffer.from,
  );
  return expected?.length === given?.length && timingSafeEqual(expected as Buffer, given as Buffer);
}
