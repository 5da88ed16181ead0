import type { Knex } from 'knex';

/**
 * A delete with conditions on what it removes, compared under the lock of the bucket. What is not there any more meets
 * every condition: nothing is done. A delete marker has no entity tag.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`create function delete_bucket_object_if(of_bucket text, of_key text, of_version text,
    marker_version text, conditions jsonb, project_limit bigint,
    out refusal text, out version_id text, out is_delete_marker boolean, out deleted boolean)
      language plpgsql as $$
    declare
      target bucket_objects;
    begin
      if conditions is not null then
        perform hold_bucket(of_bucket);
        select o.* into target from bucket_objects o where o.bucket_id = of_bucket and o.key = of_key
          and (of_version is null or o.version_id = of_version) order by o.id limit 1;
        version_id := of_version;
        is_delete_marker := false;
        deleted := false;
        if target.id is null then return; end if;
        if conditions->>'etag' not in ('*', target.etag)
          or (conditions->>'size')::bigint <> target.size
          or (conditions->>'modified_at')::timestamptz <> date_trunc('second', target.modified_at) then
          refusal := 'PreconditionFailed';
          return;
        end if;
      end if;
      select d.version_id, d.is_delete_marker, d.deleted into version_id, is_delete_marker, deleted
        from delete_bucket_object(of_bucket, of_key, of_version, marker_version, null, project_limit) d;
    end $$`);
}
