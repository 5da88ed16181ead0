import type { Knex } from 'knex';

/** Links that people get by mail: to set a new password, or to confirm that they read the mail of an address. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('users', (table) => {
    table.specificType('email_confirmed_at', 'timestamptz(3)');
  });
  await knex.schema.createTable('account_links', (table) => {
    // SHA-256 of 256 random bits.
    table.specificType('hash', 'text collate "C"').primary();
    table.text('purpose').notNullable();
    table
      .specificType('user_id', 'text collate "C"')
      .notNullable()
      .references('users.id')
      .onDelete('cascade')
      .withKeyName('account_links_user');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('expires_at', 'timestamptz(3)').notNullable();
    // Kept for a while: so many are sent to a person within an hour.
    table.specificType('used_at', 'timestamptz(3)');
    table.index(['user_id', 'purpose', 'created_at'], 'account_links_of_user');
    table.index(['expires_at'], 'account_links_expired');
    table.check(`purpose in ('password_reset', 'email_confirmation')`, [], 'account_links_purpose');
  });
}
