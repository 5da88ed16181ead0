import type { Knex } from 'knex';

/** Databases are copies with replaced values, and copies for previews. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('databases', (table) => {
    // Rules by column; null: a plain copy, or none.
    table.jsonb('mask');
    table.jsonb('unmasked_columns').notNullable().defaultTo('[]');
    // The preview that it lives and dies with, and the database that stands there for it.
    table.specificType('preview_id', 'text collate "C"');
    table.specificType('preview_of', 'text collate "C"');
  });
  await knex.raw(`create unique index databases__already_exists__preview_id on databases (preview_id, preview_of)
    where preview_id is not null and deleted_at is null`);
  await knex.schema.alterTable('previews', (table) => {
    // What became of its copies of databases; null: it shares those of the application.
    table.jsonb('copies');
    // Sealed: variables that lead to the copies, in place of those of the application.
    table.text('database_variables');
  });
}
