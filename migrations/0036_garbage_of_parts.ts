import type { Knex } from 'knex';

const FUNCTIONS = [
  // The parts of an object go with its row, so their files are noted before.
  `create function discard_part_files() returns trigger language plpgsql as $$
    begin
      insert into bucket_garbage (file_id, bucket_id)
        select file_id, old.bucket_id from bucket_object_parts where object_id = old.id;
      return old;
    end $$`,
  `create trigger discard_part_files before delete on bucket_objects for each row
     when (old.part_count is not null) execute function discard_part_files()`,
  `create or replace function discard_bucket_files(o bucket_objects) returns void language plpgsql as $$
    begin
      if o.file_id is not null then
        insert into bucket_garbage (file_id, bucket_id) values (o.file_id, o.bucket_id);
      end if;
    end $$`,
];

/** Files of objects that were uploaded in parts are freed with the object, not by the sweep of orphans. */
export async function up(knex: Knex): Promise<void> {
  for (const text of FUNCTIONS) await knex.raw(text);
}
