import type { Knex } from 'knex';

/** The serial of a zone that is no longer served: whoever serves its name next starts above it. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('dns_last_serials', (table) => {
    table.specificType('name', 'text collate "C"').primary();
    table.integer('serial').notNullable();
    table.timestamp('ended_at', { precision: 3 }).notNullable();
  });
}
