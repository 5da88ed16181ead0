// SQL functions of object lock, for migrations/0045_object_locks.ts. They use the database's clock.

export const LOCKS = [
  // Whether a version must be kept. `bypass`: the request bypasses governance mode, and the caller may do so.
  `create function is_bucket_object_locked(o bucket_objects, bypass boolean) returns boolean stable language sql as $$
    select coalesce(o.legal_hold, false) or coalesce(o.retain_until > now()
      and not (o.retain_mode = 'governance' and bypass), false) $$`,
  `create function set_bucket_object_retention(of_bucket text, of_object bigint, mode text, until timestamptz,
    bypass boolean) returns void language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
      o bucket_objects;
    begin
      select * into o from bucket_objects where id = of_object and bucket_id = of_bucket;
      if o.id is null then perform refuse_bucket_write('NoSuchVersion'); end if;
      if not b.object_lock then perform refuse_bucket_write('NoObjectLock'); end if;
      if until <= now() then perform refuse_bucket_write('RetainUntilPast'); end if;
      if o.retain_until > now() and not (o.retain_mode = 'governance' and bypass)
        and (mode is distinct from o.retain_mode or until < o.retain_until) then
        perform refuse_bucket_write('ObjectLocked');
      end if;
      update bucket_objects set retain_mode = mode, retain_until = until where id = o.id;
    end $$`,
  `create function set_bucket_object_hold(of_bucket text, of_object bigint, hold boolean) returns void
    language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
    begin
      if not b.object_lock then perform refuse_bucket_write('NoObjectLock'); end if;
      update bucket_objects set legal_hold = hold where id = of_object and bucket_id = of_bucket;
      if not found then perform refuse_bucket_write('NoSuchVersion'); end if;
    end $$`,
  // For every statement: a compliance retention cannot be shortened, and locked or held versions cannot be deleted.
  `create function guard_bucket_object_lock() returns trigger language plpgsql as $$
    begin
      if tg_op = 'DELETE' then perform refuse_bucket_write('ObjectLocked'); end if;
      if new.retain_mode is distinct from 'compliance' or new.retain_until is null
        or new.retain_until < old.retain_until or (new.bucket_id, new.key, new.version_id, new.file_id, new.part_count)
          is distinct from (old.bucket_id, old.key, old.version_id, old.file_id, old.part_count) then
        perform refuse_bucket_write('ObjectLocked');
      end if;
      return new;
    end $$`,
  `create trigger bucket_objects_keep_locked before delete on bucket_objects for each row
    when (old.legal_hold or (old.retain_mode = 'compliance' and old.retain_until > now()))
    execute function guard_bucket_object_lock()`,
  `create trigger bucket_objects_keep_compliance
    before update of retain_mode, retain_until, bucket_id, key, version_id, file_id, part_count on bucket_objects
    for each row when (old.retain_mode = 'compliance' and old.retain_until > now())
    execute function guard_bucket_object_lock()`,
];

/** As it was, with the lock that a version brings, or gets of its bucket. */
export const LOCKED_WRITES = [
  `create or replace function add_bucket_version(b buckets, object jsonb, project_limit bigint) returns bucket_objects
    language plpgsql as $$
    declare
      latest bucket_objects;
      old bucket_objects;
      made bucket_objects;
      was_object boolean;
      is_marker boolean := coalesce((object->>'is_delete_marker')::boolean, false);
      mode text := object->>'retain_mode';
      until timestamptz := (object->>'retain_until')::timestamptz;
    begin
      if (mode is not null or object->>'legal_hold' is not null) and not b.object_lock then
        perform refuse_bucket_write('NoObjectLock');
      end if;
      if mode is null and b.default_retention is not null and not is_marker then
        mode := b.default_retention->>'mode';
        until := now() + make_interval(years => coalesce((b.default_retention->>'years')::int, 0),
          days => coalesce((b.default_retention->>'days')::int, 0));
      end if;
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
          modified_at, metadata, tags, is_public, retain_mode, retain_until, legal_hold)
        values (b.id, object->>'key', case when b.versioning then object->>'version_id' else 'null' end, true,
          is_marker,
          coalesce((object->>'size')::bigint, 0), coalesce(object->>'etag', ''), object->>'file_id',
            (object->>'part_count')::int,
          object->>'upload_id', now(), coalesce(object->'metadata', '{}'), nullif(object->'tags', 'null'),
          coalesce((object->>'is_public')::boolean, false), mode, until, (object->>'legal_hold')::boolean)
        returning * into made;
      perform charge_bucket(b, (not is_marker)::int - was_object::int, made.size - coalesce(old.size, 0),
        case when latest.id is distinct from old.id then coalesce(latest.size, 0) - coalesce(old.size,
          0) else 0 end, 0, project_limit);
      return made;
    end $$`,
];

export const LOCKED_REMOVALS = [
  'drop function delete_bucket_object_if(text, text, text, text, jsonb, bigint)',
  'drop function delete_bucket_object(text, text, text, text, bigint, bigint)',
  // Without a version: a marker where the bucket has versions. only_id: nothing is done where that is not the latest.
  // A locked version is left, and `refusal` says so.
  `create function delete_bucket_object(of_bucket text, of_key text, of_version text, marker_version text,
    only_id bigint, bypass boolean, project_limit bigint, out refusal text, out version_id text,
      out is_delete_marker boolean, out deleted boolean) language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
      target bucket_objects;
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
      version_id := of_version;
      select * into target from bucket_objects v where v.bucket_id = of_bucket and v.key = of_key
        and v.version_id = coalesce(of_version, 'null') limit 1;
      if target.id is null then return; end if;
      if is_bucket_object_locked(target, bypass) then
        refusal := 'ObjectLocked';
        return;
      end if;
      delete from bucket_objects o where o.id = target.id returning o.* into gone;
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
  `create function delete_bucket_object_if(of_bucket text, of_key text, of_version text,
    marker_version text, conditions jsonb, bypass boolean, project_limit bigint,
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
      select d.refusal, d.version_id, d.is_delete_marker, d.deleted
        into refusal, version_id, is_delete_marker, deleted
        from delete_bucket_object(of_bucket, of_key, of_version, marker_version, null, bypass, project_limit) d;
    end $$`,
];
