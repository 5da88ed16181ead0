import type { Knex } from 'knex';

/** Certificate authorities of the installation: they sign for servers that only clients of the platform reach. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('authorities', (table) => {
    // What it is for.
    table.specificType('id', 'text collate "C"').primary();
    table.text('certificate').notNullable();
    // Sealed.
    table.text('key').notNullable();
    table.specificType('created_at', 'timestamptz(3) default now()').notNullable();
  });
}
