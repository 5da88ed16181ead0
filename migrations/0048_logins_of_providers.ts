import type { Knex } from 'knex';

/** Logins at other providers, and clients of the authorisation server that register themselves. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('oauth_records', (table) => {
    // Address, or /64 of IPv6, from which a client has registered itself. Null: the operator registered it.
    table.text('registered_from');
  });
  await knex.schema.alterTable('users', (table) => {
    // Until then the first login at a provider with the verified e-mail address of the user is linked.
    table.specificType('link_by_email_until', 'timestamptz(3)');
  });
  await knex.schema.createTable('linked_logins', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table
      .specificType('user_id', 'text collate "C"')
      .notNullable()
      .references('users.id')
      .onDelete('cascade')
      .withKeyName('linked_logins_user');
    // Name in the settings at the time.
    table.text('provider').notNullable();
    table.text('issuer').notNullable();
    // Unique within the issuer, and never given to somebody else (OpenID Connect Core section 2).
    table.text('subject').notNullable();
    // As the provider said it when the login was linked: for the person, who may have several.
    table.text('email');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('last_used_at', 'timestamptz(3)');
    table.unique(['issuer', 'subject'], { indexName: 'linked_logins__already_exists' });
    table.unique(['user_id', 'provider'], { indexName: 'linked_logins__already_exists__provider' });
  });
  await knex.schema.createTable('login_attempts', (table) => {
    // SHA-256 of the state that the provider sends back, then of an id that the browser alone has.
    table.specificType('hash', 'text collate "C"').primary();
    // SHA-256 of the cookie: an address with a code works in the browser that began only.
    table.text('browser_hash').notNullable();
    // Sealed.
    table.text('payload').notNullable();
    table.specificType('expires_at', 'timestamptz(3)').notNullable();
    table.index(['expires_at'], 'login_attempts_expired');
  });
}
