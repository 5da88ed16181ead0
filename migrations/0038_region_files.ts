import type { Knex } from 'knex';

/** How far files of applications are apart, beside their networks; null until a worker of this version reports it. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table region_networks add column files text
      constraint region_networks_files check (files in ('sandbox', 'user', 'none'))`);
}
