import type { Knex } from 'knex';

/** Who writes to the input of a run: a client renews it, so that one that vanished frees the input. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('runs', (table) => {
    table.text('writer');
    table.specificType('writer_until', 'timestamptz(3)');
    // When a writer was there for the last time: a run with a terminal ends some time after its last one.
    table.specificType('attached_at', 'timestamptz(3)');
  });
}
