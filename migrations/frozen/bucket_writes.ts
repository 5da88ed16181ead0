// SQL functions that write objects, for migrations/0022_object_storage.ts.

export const CHARGES = [
  // A refusal ends the statement and with it the transaction; drivers know it by the code.
  `create function refuse_bucket_write(reason text) returns void language plpgsql as $$
    begin
      raise exception using errcode = 'PS300', message = reason;
    end $$`,
  // Serialises the writes of a bucket. A delete of the bucket takes the same lock.
  `create function hold_bucket(of_bucket text) returns buckets language plpgsql as $$
    declare
      found_bucket buckets;
    begin
      perform 1 from bucket_usage where bucket_id = of_bucket for update;
      select * into found_bucket from buckets where id = of_bucket and deleted_at is null;
      if found_bucket.id is null then perform refuse_bucket_write('NoSuchBucket'); end if;
      return found_bucket;
    end $$`,
  `create function charge_bucket(b buckets, objects bigint, stored bigint, noncurrent bigint, uploading bigint,
    project_limit bigint)
    returns void language plpgsql as $$
    declare
      more bigint := stored + uploading;
    begin
      update bucket_usage set object_count = object_count + objects, size_bytes = size_bytes + stored,
          noncurrent_size_bytes = noncurrent_size_bytes + noncurrent, upload_bytes = upload_bytes + uploading
        where bucket_id = b.id
          and (more <= 0 or b.quota_gb is null
            or size_bytes + upload_bytes + more <= b.quota_gb * 1073741824::bigint);
      if not found then perform refuse_bucket_write('QuotaExceeded'); end if;
      if more <> 0 then
        update bucket_totals set size_bytes = size_bytes + more where project_id = b.project_id
          and (more < 0 or project_limit is null or size_bytes + more <= project_limit);
        if not found then perform refuse_bucket_write('QuotaExceeded'); end if;
      end if;
    end $$`,
  `create function discard_bucket_files(o bucket_objects) returns void language plpgsql as $$
    begin
      if o.file_id is not null then
        insert into bucket_garbage (file_id, bucket_id) values (o.file_id, o.bucket_id);
      elsif o.part_count is not null then
        insert into bucket_garbage (file_id, bucket_id)
          select file_id, o.bucket_id from bucket_object_parts where object_id = o.id;
        delete from bucket_object_parts where object_id = o.id;
      end if;
    end $$`,
];

export const WRITES = [
  // The one way in which a version comes to be: an object, or a delete marker. The bucket is held.
  `create function add_bucket_version(b buckets, object jsonb, project_limit bigint) returns bucket_objects
    language plpgsql as $$
    declare
      latest bucket_objects;
      old bucket_objects;
      made bucket_objects;
      was_object boolean;
      is_marker boolean := coalesce((object->>'is_delete_marker')::boolean, false);
    begin
      select * into latest from bucket_objects where bucket_id = b.id and key = object->>'key' order by id limit 1;
      was_object := latest.id is not null and not latest.is_delete_marker;
      if was_object
        and (object->>'if_none_match')::boolean then perform refuse_bucket_write('PreconditionFailed'); end if;
      if object->>'if_match' is not null then
        if not was_object then perform refuse_bucket_write('NoSuchKey'); end if;
        if object->>'if_match' not in ('*',
          latest.etag) then perform refuse_bucket_write('PreconditionFailed'); end if;
      end if;
      if not b.versioning and latest.id is not null then
        delete from bucket_objects where bucket_id = b.id and key = object->>'key' and version_id = 'null'
          returning * into old;
        if old.id is not null then perform discard_bucket_files(old); end if;
      end if;
      if latest.id is not null and latest.id is distinct from old.id then
        update bucket_objects set is_latest = false, noncurrent_at = now() where id = latest.id;
      end if;
      insert into bucket_objects (bucket_id, key, version_id, is_latest, is_delete_marker, size, etag, file_id,
        part_count, upload_id,
          modified_at, metadata, tags, is_public)
        values (b.id, object->>'key', case when b.versioning then object->>'version_id' else 'null' end, true,
          is_marker,
          coalesce((object->>'size')::bigint, 0), coalesce(object->>'etag', ''), object->>'file_id',
            (object->>'part_count')::int,
          object->>'upload_id', now(), coalesce(object->'metadata', '{}'), nullif(object->'tags', 'null'),
          coalesce((object->>'is_public')::boolean, false))
        returning * into made;
      perform charge_bucket(b, (not is_marker)::int - was_object::int, made.size - coalesce(old.size, 0),
        case when latest.id is distinct from old.id then coalesce(latest.size, 0) - coalesce(old.size,
          0) else 0 end, 0, project_limit);
      return made;
    end $$`,
  `create function put_bucket_object(of_bucket text, object jsonb, project_limit bigint) returns bucket_objects
    language sql as $$ select * from add_bucket_version(hold_bucket(of_bucket), object, project_limit) $$`,
];

export const REMOVALS = [
  // Without a version: a marker where the bucket has versions. only_id: nothing is done where that is not the latest.
  `create function delete_bucket_object(of_bucket text, of_key text, of_version text, marker_version text,
    only_id bigint,
      project_limit bigint, out version_id text, out is_delete_marker boolean, out deleted boolean)
        language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
      gone bucket_objects;
      next bucket_objects;
      made bucket_objects;
    begin
      deleted := false;
      is_delete_marker := false;
      if only_id is not null and not exists (select from bucket_objects o where o.id = only_id
        and (o.is_latest or of_version is not null)) then
        return;
      end if;
      if of_version is null and b.versioned_at is not null then
        made := add_bucket_version(b, jsonb_build_object('key', of_key, 'version_id', marker_version,
          'is_delete_marker', true), project_limit);
        version_id := made.version_id;
        is_delete_marker := true;
        deleted := true;
        return;
      end if;
      delete from bucket_objects o where o.id = (select v.id from bucket_objects v
          where v.bucket_id = of_bucket and v.key = of_key and v.version_id = coalesce(of_version,
            'null') limit 1) returning o.* into gone;
      version_id := of_version;
      if gone.id is null then return; end if;
      deleted := true;
      is_delete_marker := gone.is_delete_marker;
      perform discard_bucket_files(gone);
      if gone.is_latest then
        update bucket_objects o set is_latest = true, noncurrent_at = null
          where o.id = (select v.id from bucket_objects v where v.bucket_id = of_bucket
            and v.key = of_key order by v.id limit 1)
          returning o.* into next;
      end if;
      perform charge_bucket(b, coalesce((not next.is_delete_marker)::int, 0) - (gone.is_latest
        and not gone.is_delete_marker)::int, -gone.size,
        case when gone.is_latest then -coalesce(next.size, 0) else -gone.size end, 0, project_limit);
    end $$`,
];
