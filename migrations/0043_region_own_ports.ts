import type { Knex } from 'knex';

/** Whether instances can have a port that others have too; null until a worker of this version reports it. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table region_networks add column own_ports boolean');
}
