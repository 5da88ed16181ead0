// The documents of a bucket that are replaced as a whole: CORS, lifecycle and policy.
import { isPublicPolicy, policyMistake, type PolicyStatement } from '../../../core/protocols/buckets/bucket_policy';
import type { Context } from '../../../core/context';
import { problem, validationFailed, type FieldError } from '../../../core/errors';
import { named } from '../../../db/statement';
import type {
  BucketCorsInput,
  BucketLifecycleInput,
  BucketPolicyInput,
  BucketPolicyStatement,
} from '../../../schema/types';
import type { Bucket } from '../bucket';

const CORS_MAX_AGE_SECONDS = 3600;
const POLICY_BYTES_MAX = 20 * 1024;
const KEYS = named('select access_key_id from bucket_access_keys where project_id = $1 and deleted_at is null');

export async function setCors(ctx: Context, bucket: Bucket, { rules }: BucketCorsInput): Promise<Bucket> {
  const cors = rules.map(({ allowed_origins, allowed_methods, allowed_headers, expose_headers, max_age_seconds }) => ({
    allowed_origins,
    allowed_methods,
    allowed_headers: allowed_headers ?? [],
    expose_headers: expose_headers ?? [],
    max_age_seconds: max_age_seconds ?? CORS_MAX_AGE_SECONDS,
  }));
  return bucket.update(ctx, { cors });
}

/** @throws validation_failed for a rule without an age */
export async function setLifecycle(ctx: Context, bucket: Bucket, { rules }: BucketLifecycleInput): Promise<Bucket> {
  const lifecycle = rules.map((rule) => ({
    id: rule.id,
    enabled: rule.enabled ?? true,
    prefix: rule.prefix ?? '',
    expire_after_days: rule.expire_after_days ?? null,
    expire_noncurrent_after_days: rule.expire_noncurrent_after_days ?? null,
    abort_incomplete_uploads_after_days: rule.abort_incomplete_uploads_after_days ?? null,
  }));
  const mistakes = lifecycle.flatMap((rule, index): FieldError[] =>
    (rule.expire_after_days ?? rule.expire_noncurrent_after_days ?? rule.abort_incomplete_uploads_after_days) === null
      ? [{ field: `rules.${index}`, code: 'required', detail: 'needs at least one of the three ages' }]
      : [],
  );
  if (mistakes.length) throw validationFailed(mistakes);
  return bucket.update(ctx, { lifecycle, lifecycle_at: null });
}

/** @throws policy_invalid, engine_unavailable for conditions of which a gateway decides by itself */
export async function setPolicy(ctx: Context, bucket: Bucket, { statements }: BucketPolicyInput): Promise<Bucket> {
  const policy = (statements as BucketPolicyStatement[]).map(
    ({ id, effect, principals, actions, resources, conditions }) => ({
      id: id ?? null,
      effect,
      principals,
      actions,
      resources,
      ...(conditions?.length && { conditions }),
    }),
  ) satisfies PolicyStatement[];
  if (ctx.config.rgwUrl !== null && policy.some(({ conditions }) => conditions))
    throw problem('engine_unavailable', 'Conditions of policies are not offered with a RADOS Gateway.');
  if (Buffer.byteLength(JSON.stringify({ statements: policy })) > POLICY_BYTES_MAX)
    throw problem('policy_invalid', 'The policy is larger than 20 KiB.');
  const keys = await ctx.sql.query<{ access_key_id: string }>(KEYS, [bucket.project_id]);
  const principals = new Set(keys.map(({ access_key_id }) => access_key_id));
  const mistake = policyMistake(policy, { bucket: bucket.name, principals });
  if (mistake) throw problem('policy_invalid', mistake);
  if (bucket.public_access_block?.block_public_policy && isPublicPolicy(policy))
    throw problem(
      'policy_invalid',
      'The bucket blocks public policies. Remove the block over S3 first, with DeletePublicAccessBlock.',
    );
  return bucket.update(ctx, { policy, policy_document: null });
}
