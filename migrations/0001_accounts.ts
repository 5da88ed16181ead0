import type { Knex } from 'knex';

/** Accounts own users and projects; rate limits and suspension are theirs. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('accounts', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table.text('name').notNullable();
    table.text('status').notNullable().defaultTo('active');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.check(`status in ('active', 'suspended')`, [], 'accounts_status');
  });
  await knex.schema.createTable('users', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table.text('account_id').notNullable().references('accounts.id').withKeyName('users_account');
    table.text('email').notNullable();
    table.text('name').notNullable();
    table.text('password_hash');
    table.text('totp_secret');
    table.specificType('totp_confirmed_at', 'timestamptz(3)');
    table.bigInteger('totp_last_step').notNullable().defaultTo(0);
    // Two-factor codes tried since the last good one, and when the next may be tried.
    table.integer('code_failures').notNullable().defaultTo(0);
    table.specificType('code_retry_at', 'timestamptz(3)');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.unique(['email'], { indexName: 'users__already_exists__email' });
  });
  await knex.schema.createTable('recovery_codes', (table) => {
    table.text('user_id').notNullable().references('users.id').onDelete('cascade').withKeyName('recovery_codes_user');
    table.text('hash').notNullable();
    table.specificType('used_at', 'timestamptz(3)');
    table.primary(['user_id', 'hash'], { constraintName: 'recovery_codes_pkey' });
  });
  await knex.schema.createTable('sessions', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table.text('hash').notNullable();
    table.text('user_id').notNullable().references('users.id').onDelete('cascade').withKeyName('sessions_user');
    table.text('address').notNullable();
    table.text('user_agent').notNullable();
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('last_seen_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('expires_at', 'timestamptz(3)').notNullable();
    table.unique(['hash'], { indexName: 'sessions_hash' });
    table.index(['user_id'], 'sessions_by_user');
    table.index(['expires_at'], 'sessions_by_expiry');
  });
}
