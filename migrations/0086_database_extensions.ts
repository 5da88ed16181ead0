import type { Knex } from 'knex';

/** Extensions of PostgreSQL that owners want in their databases; the job of the database brings them there. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_extensions', (table) => {
    table
      .specificType('database_id', 'text collate "C"')
      .notNullable()
      .references('databases.id')
      .onDelete('cascade')
      .withKeyName('database_extensions_database');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('status').notNullable();
    table.text('status_reason');
    // Of what is there.
    table.text('version');
    table.primary(['database_id', 'name'], { constraintName: 'database_extensions_pkey' });
    table.check(`status in ('enabling', 'enabled', 'disabling', 'failed')`, [], 'database_extensions_status');
  });
}
