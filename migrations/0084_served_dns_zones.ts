import type { Knex } from 'knex';

/**
 * Whether a DNS zone is answered, for name servers beside that of the jobs: they follow the rows by notifications.
 * Before the job of a zone has said so it is null.
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  // The serial that one of them has told secondaries of, where the jobs were away.
  'alter table dns_zones add column is_served boolean, add column notified_serial bigint',
  `create function dns_zone_changed() returns trigger language plpgsql as $$
    begin
      perform pg_notify('dns_zones', coalesce(new.id, old.id));
      return null;
    end $$`,
  `create trigger dns_zones_change after update on dns_zones for each row
    when ((old.is_served or new.is_served)
      and (old.is_served, old.serial, old.signing_keys, old.deleted_at)
        is distinct from (new.is_served, new.serial, new.signing_keys, new.deleted_at))
    execute function dns_zone_changed()`,
  `create trigger dns_zones_removal after delete on dns_zones for each row
    when (old.is_served) execute function dns_zone_changed()`,
];
