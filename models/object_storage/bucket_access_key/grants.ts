// Grants of access keys, as the API takes and keeps them.
import type { Grant } from '../../../core/protocols/bucket_access';
import type { Context } from '../../../core/context';
import { validationFailed, type FieldError } from '../../../core/errors';
import type { BucketGrantInput } from '../../../schema/types';
import { Bucket } from '../bucket';

/** The grants with their buckets looked up. @throws validation_failed (duplicate), reference_not_found */
export async function grantsOf(ctx: Context, inputs: readonly BucketGrantInput[]): Promise<Grant[]> {
  const grants = inputs.map(({ bucket_id, permission }) => ({ bucket_id: bucket_id ?? null, permission }));
  const mistakes = grants.flatMap((grant, index): FieldError[] =>
    grants.findIndex(({ bucket_id }) => bucket_id === grant.bucket_id) < index
      ? [{ field: `grants.${index}.bucket_id`, code: 'duplicate', detail: 'has a grant already' }]
      : [],
  );
  if (mistakes.length) throw validationFailed(mistakes);
  for (const [index, { bucket_id }] of grants.entries())
    if (bucket_id !== null) await Bucket.referenced(ctx, bucket_id, `grants.${index}.bucket_id`);
  return grants;
}

export function namedBuckets(grants: readonly Grant[]): string[] {
  return grants.flatMap(({ bucket_id }) => (bucket_id === null ? [] : [bucket_id]));
}
