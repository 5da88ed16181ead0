import type { Knex } from 'knex';

/** Imports that follow their source until they are finished. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('database_imports', (table) => {
    table.text('phase');
    table.bigInteger('lag_bytes');
    table.integer('lag_seconds');
    // Of the replication slot at the source, from before it is made until it is removed.
    table.text('source_slot');
    table.specificType('finish_requested_at', 'timestamptz(3)');
    table.boolean('make_source_read_only').notNullable().defaultTo(false);
    table.check(`phase in ('copying', 'following', 'finishing')`, [], 'database_imports_phase');
  });
}
