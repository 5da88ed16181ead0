import { randomBytes } from 'node:crypto';
import type { Grant } from '../../core/protocols/buckets/bucket_access';
import type { Context } from '../../core/context';
import { problem, validationFailed, type FieldError } from '../../core/errors';
import { mintId } from '../../core/ids';
import { defineStates } from '../../core/states';
import type { BucketGrantInput, CreateBucketAccessKeyInput, UpdateBucketAccessKeyInput } from '../../schema/types';
import type { Bin } from '../base/bin';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { requestedChanges } from '../base/requested_changes';
import { Bucket } from './bucket';
import { requireObjectStorage } from './bucket/endpoint';
import { KEY_LETTERS } from './bucket/presign';
import { sealSecret } from './bucket_access_key/secret';

const ID_PREFIX = 'PK';
const ID_LENGTH = 20;
/** 240 bits: 40 characters, as AWS has them. */
const SECRET_BYTES = 30;

type Status = 'active' | 'disabled' | 'expired';

/** A pair of access key id and secret for the S3 endpoint. */
export class BucketAccessKey extends Resource {
  static readonly table = 'bucket_access_keys';
  static readonly kind = 'bucket_access_key';
  static readonly idPrefix = 'bka';
  static override readonly projectChild = 'bucket_access_keys';
  static override readonly bin: Bin<BucketAccessKey> = { nameFormat: null };
  static override readonly filters = { status: 'status = ?', bucket_id: 'bucket_ids @> array[?]::text[]' };
  static override readonly sorts = ['name', 'last_used_at'];
  static override readonly quotas = [{ resource: 'bucket_access_keys' as const }];
  static override readonly states = defineStates({
    initial: ['active', 'disabled'],
    moves: {
      active: ['disabled', 'expired'],
      disabled: ['active', 'expired'],
      expired: ['active', 'disabled'],
    },
  });

  declare name: string;
  declare access_key_id: string;
  declare sealed_secret: string;
  declare grants: Grant[];
  declare bucket_ids: string[];
  declare enabled: boolean;
  declare expires_at: string | null;
  declare last_used_at: string | null;
  declare status: Status;
  /** The secret in plain, where this answer shows it. */
  declare shown?: string;

  /** @throws engine_unavailable, validation_failed, reference_not_found, quota_exceeded */
  static async create(ctx: Context, input: CreateBucketAccessKeyInput): Promise<BucketAccessKey> {
    requireObjectStorage(ctx.config);
    requireFuture(input.expires_at);
    const grants = await grantsOf(ctx, input.grants ?? []);
    requireDestroyingFor(ctx, grants);
    const id = mintId(BucketAccessKey.idPrefix);
    const secret = newSecret();
    const enabled = input.enabled ?? true;
    const key = await BucketAccessKey.insert(ctx, {
      id,
      name: input.name,
      access_key_id: newKeyId(),
      grants,
      enabled,
      sealed_secret: sealSecret(ctx.secrets, id, secret),
      bucket_ids: namedBuckets(grants),
      expires_at: input.expires_at ?? null,
      status: enabled ? 'active' : 'disabled',
    });
    key.shown = secret;
    return key;
  }

  /** The status that the clock gives, whether or not the loop has written it. */
  get currentStatus(): Status {
    return statusAt(this, Date.now());
  }

  /** @throws validation_failed, reference_not_found */
  async change(ctx: Context, input: UpdateBucketAccessKeyInput): Promise<this> {
    const { name, grants: given, enabled, expires_at } = requestedChanges(input, this);
    requireFuture(expires_at);
    const grants = given && (await grantsOf(ctx, given));
    if (grants) requireDestroyingFor(ctx, grants);
    const after = {
      enabled: enabled ?? this.enabled,
      expires_at: expires_at === undefined ? this.expires_at : expires_at,
    };
    await this.forget(ctx);
    return this.update(ctx, {
      ...(name != null && { name }),
      ...(grants && { grants, bucket_ids: namedBuckets(grants) }),
      ...after,
      status: statusAt(after, Date.now()),
    });
  }

  /** It opens nothing any more. In the bin it keeps its secret. */
  async destroy(ctx: Context): Promise<void> {
    await this.forget(ctx);
    await removeToBin(ctx, this);
  }

  async rotate(ctx: Context): Promise<this> {
    await this.forget(ctx);
    const secret = newSecret();
    await this.update(ctx, { sealed_secret: sealSecret(ctx.secrets, this.id, secret) });
    this.shown = secret;
    return this;
  }

  /** S3 endpoints remember a key for a moment: what it may no longer do ends with the answer. */
  private async forget(ctx: Context): Promise<void> {
    await ctx.forget({ key_id: this.id });
  }
}

/** Expiry shows before `enabled`: it ends the key whatever the switch says. */
export function statusAt(
  { enabled, expires_at }: { enabled: boolean; expires_at: string | null },
  now: number,
): Status {
  if (expires_at !== null && Date.parse(expires_at) <= now) return 'expired';
  return enabled ? 'active' : 'disabled';
}

/** The grants with their buckets looked up. @throws validation_failed (duplicate), reference_not_found */
async function grantsOf(ctx: Context, inputs: readonly BucketGrantInput[]): Promise<Grant[]> {
  const grants = inputs.map(({ bucket_id, permission }) => ({ bucket_id: bucket_id ?? null, permission }));
  const mistakes = grants.flatMap((grant, index): FieldError[] =>
    grants.findIndex(({ bucket_id }) => bucket_id === grant.bucket_id) < index
      ? [{ field: `grants.${index}.bucket_id`, code: 'duplicate', detail: 'already has a grant' }]
      : [],
  );
  if (mistakes.length) throw validationFailed(mistakes);
  for (const [index, { bucket_id }] of grants.entries())
    if (bucket_id !== null) await Bucket.referenced(ctx, bucket_id, `grants.${index}.bucket_id`);
  return grants;
}

/** A key that may not destroy would remove versions for good with the one that it makes. @throws destroy_not_allowed */
function requireDestroyingFor({ identity }: Context, grants: readonly Grant[]): void {
  if (identity?.may_destroy || !grants.some(({ permission }) => permission === 'full')) return;
  throw problem('destroy_not_allowed', 'A grant of `full` removes versions for good, and this key may not do that.');
}

function namedBuckets(grants: readonly Grant[]): string[] {
  return grants.flatMap(({ bucket_id }) => (bucket_id === null ? [] : [bucket_id]));
}

function requireFuture(expires_at: string | null | undefined): void {
  if (expires_at == null || Date.parse(expires_at) > Date.now()) return;
  throw validationFailed([{ field: 'expires_at', code: 'too_small', detail: 'must be in the future' }]);
}

function newKeyId(): string {
  const bytes = randomBytes(ID_LENGTH - ID_PREFIX.length);
  return ID_PREFIX + Array.from(bytes, (byte) => KEY_LETTERS[byte & 31]).join('');
}

/** Letters and digits only: a secret with a slash is what people copy badly. */
function newSecret(): string {
  return randomBytes(SECRET_BYTES * 2)
    .toString('base64')
    .replace(/[+/=]/g, '')
    .slice(0, 40);
}
