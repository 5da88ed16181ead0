import type { Knex } from 'knex';

/** What the cluster that runs applications can do, for processes of the API, which have no account there. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('cluster_facts', (table) => {
    table.text('name').primary();
    table.jsonb('value').notNullable();
    table.timestamp('updated_at', { precision: 3 }).notNullable().defaultTo(knex.fn.now());
  });
}
