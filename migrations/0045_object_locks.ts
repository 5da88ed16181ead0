import type { Knex } from 'knex';
import { LOCKED_REMOVALS, LOCKED_WRITES, LOCKS } from './frozen/bucket_locks';

/** Versions that must stay: retention and legal hold of objects, default retention of buckets (docs/decisions/0040). */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table buckets add column object_lock boolean not null default false,
    add column default_retention jsonb,
    add constraint buckets_lock_versions check (versioning or not object_lock),
    add constraint buckets_retention_of_locks check (object_lock or default_retention is null)`);
  await knex.raw(`alter table bucket_objects add column retain_mode text, add column retain_until timestamptz(3),
    add column legal_hold boolean,
    add constraint bucket_objects_retention check ((retain_mode is null) = (retain_until is null))`);
  for (const sql of [...LOCKS, ...LOCKED_WRITES, ...LOCKED_REMOVALS]) await knex.raw(sql);
}
