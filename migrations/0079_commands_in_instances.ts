import type { Knex } from 'knex';

/** The running instance that a command enters; null: it runs beside the instances. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('runs', (table) => {
    table.specificType('instance_id', 'text collate "C"');
  });
  await knex.raw('create index runs_by_instance on runs (application_id, instance_id, id)');
}
