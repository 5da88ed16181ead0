// A SQL function that writes several objects, for migrations/0035_object_batches.ts.

export const BATCHES = [
  // In order and independently: a rejected write does not affect the others. One lock and one commit for all.
  `create function put_bucket_objects(of_bucket text, objects jsonb, project_limit bigint)
    returns table (refusal text, object bucket_objects) language plpgsql as $$
    declare
      b buckets := hold_bucket(of_bucket);
      given jsonb;
    begin
      for given in select value from jsonb_array_elements(objects) with ordinality as list (value, n) order by n loop
        begin
          refusal := null;
          object := add_bucket_version(b, given, project_limit);
        exception when sqlstate 'PS300' then
          refusal := sqlerrm;
          object := null;
        end;
        return next;
      end loop;
    end $$`,
];
