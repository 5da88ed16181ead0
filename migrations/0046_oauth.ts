import type { Knex } from 'knex';

/** What the authorisation server remembers. Keys of the kind `oauth` are what people have allowed programs to do. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('api_keys', (table) => {
    table.text('client_id');
    table.dropChecks('api_keys_kind');
    table.dropChecks('api_keys_owner');
    table.check(`kind in ('personal', 'project', 'oauth')`, [], 'api_keys_kind');
    table.check(
      `(kind <> 'project') = (user_id is not null) and (kind = 'project') = (project_id is not null)`,
      [],
      'api_keys_owner',
    );
    table.check(`(kind = 'oauth') = (client_id is not null)`, [], 'api_keys_client');
  });
  await knex.schema.createTable('oauth_records', (table) => {
    // Name of a model of the server: AccessToken, RefreshToken, Client.
    table.text('kind').notNullable();
    // SHA-256 of the token or id.
    table.specificType('hash', 'text collate "C"').notNullable();
    table.specificType('user_code_hash', 'text collate "C"');
    table
      .specificType('grant_id', 'text collate "C"')
      .references('api_keys.id')
      .onDelete('cascade')
      .withKeyName('oauth_records_grant');
    // Of access tokens, which every request reads.
    table.specificType('scopes', 'text[]');
    // Sealed.
    table.text('payload').notNullable();
    table.specificType('consumed_at', 'timestamptz(3)');
    table.specificType('polled_at', 'timestamptz(3)');
    table.integer('poll_seconds').notNullable().defaultTo(5);
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('expires_at', 'timestamptz(3)');
    table.primary(['kind', 'hash'], { constraintName: 'oauth_records_pkey' });
    table.unique(['user_code_hash'], { indexName: 'oauth_records_user_code' });
    table.index(['grant_id'], 'oauth_records_of_grant');
    table.index(['expires_at'], 'oauth_records_expired');
  });
}
