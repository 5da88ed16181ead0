import type { Knex } from 'knex';

/**
 * Public access that clients of S3 block, and who owns objects (docs/decisions/0040). Null, as in all buckets that the
 * API has made: nothing is blocked, and objects may have ACLs.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table buckets add column public_access_block jsonb, add column object_ownership text,
    add constraint buckets_object_ownership
      check (object_ownership in ('BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter'))`);
}
