import type { Knex } from 'knex';

/** Zones below a name are found by their names read backwards, among those of all projects. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('create index dns_zones_backwards on dns_zones (reverse(lower(name))) where deleted_at is null');
}
