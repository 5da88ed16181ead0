// SQL functions of multipart uploads and of lists, for migrations/0022_object_storage.ts.

export const UPLOADS = [
  `create function put_bucket_part(of_bucket text, of_upload text, part jsonb,
    project_limit bigint) returns timestamptz language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
      old bucket_upload_parts;
      at timestamptz(3) := now();
    begin
      if not exists (select from bucket_uploads where id = of_upload and bucket_id = of_bucket
        and key = part->>'key') then
        perform refuse_bucket_write('NoSuchUpload');
      end if;
      delete from bucket_upload_parts where upload_id = of_upload and number = (part->>'number')::int
        returning * into old;
      if old.file_id is not null then
        insert into bucket_garbage (file_id, bucket_id) values (old.file_id, of_bucket);
      end if;
      insert into bucket_upload_parts (upload_id, number, file_id, size, etag, checksums, modified_at)
        values (of_upload, (part->>'number')::int, part->>'file_id', (part->>'size')::bigint, part->>'etag',
          part->'checksums', at);
      perform charge_bucket(b, 0, 0, 0, (part->>'size')::bigint - coalesce(old.size, 0), project_limit);
      return at;
    end $$`,
  // file_ids: the parts of the object in their order, as they were when its entity tag was made.
  `create function complete_bucket_upload(of_bucket text, of_upload text, file_ids text[], object jsonb,
    project_limit bigint)
    returns bucket_objects language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
      made bucket_objects;
    begin
      if not exists (select from bucket_uploads where id = of_upload and bucket_id = of_bucket) then
        perform refuse_bucket_write('NoSuchUpload');
      end if;
      if (select count(*) from bucket_upload_parts where upload_id = of_upload
        and file_id = any(file_ids)) <> cardinality(file_ids) then
        perform refuse_bucket_write('InvalidPart');
      end if;
      perform charge_bucket(b, 0, 0, 0, -(select sum(size)::bigint from bucket_upload_parts
        where upload_id = of_upload), null);
      made := add_bucket_version(b, object, project_limit);
      insert into bucket_object_parts (object_id, number, file_id, size, checksums)
        select made.id, number, file_id, size, checksums from bucket_upload_parts where upload_id = of_upload
          and file_id = any(file_ids);
      delete from bucket_upload_parts where upload_id = of_upload and file_id = any(file_ids);
      perform drop_bucket_upload(of_upload);
      return made;
    end $$`,
  `create function drop_bucket_upload(of_upload text) returns void language sql as $$
    insert into bucket_garbage (file_id, bucket_id)
      select p.file_id, u.bucket_id from bucket_upload_parts p join bucket_uploads u on u.id = p.upload_id
        where p.upload_id = of_upload;
    delete from bucket_uploads where id = of_upload $$`,
  `create function abort_bucket_upload(of_bucket text, of_upload text) returns void language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
    begin
      if not exists (select from bucket_uploads where id = of_upload and bucket_id = of_bucket) then
        perform refuse_bucket_write('NoSuchUpload');
      end if;
      perform charge_bucket(b, 0, 0, 0, -coalesce((select sum(size)::bigint from bucket_upload_parts
        where upload_id = of_upload), 0), null);
      perform drop_bucket_upload(of_upload);
    end $$`,
];

/**
 * Entries and groups of keys up to the delimiter, from `at` on and after the entry `after`; each group costs one look
 * into the index.
 */
const groups = (name: string, condition: string, order: string): string =>
  `create function ${name}(of_bucket text, prefix text, delimiter text, at_key text, after_key text,
    after_id bigint, end_key text,
      at_most integer) returns table (common_prefix text, object bucket_objects) stable language plpgsql as $$
    declare
      at text := at_key;
      found_count integer := 0;
      cut integer;
      is_cut boolean;
    begin
      while found_count < at_most loop
        is_cut := false;
        for object in select o.* from bucket_objects o where o.bucket_id = of_bucket and ${condition}
            and o.key >= at and o.key < end_key order by ${order} limit at_most - found_count loop
          cut := strpos(substr(object.key, char_length(prefix) + 1), delimiter);
          found_count := found_count + 1;
          if cut > 0 then
            common_prefix := left(object.key, char_length(prefix) + cut + char_length(delimiter) - 1);
            at := text_after(common_prefix);
            object := null;
            is_cut := true;
          end if;
          return next;
          exit when is_cut;
        end loop;
        exit when not is_cut;
        common_prefix := null;
      end loop;
    end $$`;

export const LISTS = [
  // The first text after all that begin with this one; U+D800 to U+DFFF are no characters.
  `create function text_after(given text) returns text immutable language sql as $$
    select case ascii(right(given, 1)) when 1114111 then given || repeat(chr(1114111), 256)
      when 55295 then left(given, -1) || chr(57344) else left(given, -1) || chr(ascii(right(given, 1)) + 1) end $$`,
  groups('list_bucket_groups', 'o.is_latest and not o.is_delete_marker and o.key > after_key', 'o.key'),
  groups('list_bucket_version_groups', '(o.key, o.id) > (after_key, after_id)', 'o.key, o.id'),
];
