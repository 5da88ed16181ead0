// URLs that work without an access key, signed with a key that only this installation knows: one for each bucket.
import type { Context } from '../../../core/context';
import { validationFailed } from '../../../core/errors';
import { KEY_BYTES_MAX } from '../../../core/protocols/objects';
import type { SecretBox } from '../../../core/secrets';
import { presignUrl, type Credentials } from '../../../core/protocols/sigv4';
import type { PresignBucketObjectInput, PresignedUrl } from '../../../schema/types';
import type { Bucket } from '../bucket';
import { endpointOf, requireObjectStorage } from './endpoint';

const EXPIRES_SECONDS = 3600;
const OWNER_PREFIX = 'PO';
const ID_LENGTH = 20;
const SECRET_LENGTH = 40;
/** Letters and digits of an access key id. */
export const KEY_LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/**
 * The key of the owner of a bucket. It is derived from the key of the installation, so it is stored nowhere, and URLs
 * end when that key is changed.
 */
export function ownerCredentials(secrets: SecretBox, bucketId: string): Credentials {
  const id = secrets.hmac(bucketId, 'bucket owner id');
  const letters = Buffer.from(id, 'hex').subarray(0, ID_LENGTH - OWNER_PREFIX.length);
  return {
    accessKeyId: OWNER_PREFIX + Array.from(letters, (byte) => KEY_LETTERS[byte & 31]).join(''),
    secretAccessKey: secrets.hmac(bucketId, 'bucket owner secret').slice(0, SECRET_LENGTH),
  };
}

/** @throws engine_unavailable, validation_failed */
export function presign(ctx: Context, bucket: Bucket, input: PresignBucketObjectInput): PresignedUrl {
  requireObjectStorage(ctx.config);
  requireKey(input.key);
  const method = input.method ?? 'GET';
  const expiresSeconds = input.expires_in_seconds ?? EXPIRES_SECONDS;
  const now = new Date();
  const url = presignUrl({
    method,
    key: input.key,
    expiresSeconds,
    contentType: input.content_type,
    now,
    endpoint: endpointOf(ctx.config),
    bucket: bucket.name,
    region: bucket.region,
    credentials: ownerCredentials(ctx.secrets, bucket.id),
  });
  ctx.activity.resource = { type: 'bucket', id: bucket.id, name: bucket.name, project_id: bucket.project_id };
  // As the signature has it: to the second.
  const expires_at = new Date(Math.floor(now.getTime() / 1000 + expiresSeconds) * 1000).toISOString();
  return { url, method, expires_at };
}

function requireKey(key: string): void {
  if (!key.includes('\0') && key.isWellFormed() && Buffer.byteLength(key) <= KEY_BYTES_MAX) return;
  throw validationFailed([{ field: 'key', code: 'invalid_format', detail: 'is not a valid object key' }]);
}
