import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('api_keys', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table.text('kind').notNullable();
    table.text('name').notNullable();
    table.text('prefix').notNullable();
    table.text('hash').notNullable();
    table
      .specificType('user_id', 'text collate "C"')
      .references('users.id')
      .onDelete('cascade')
      .withKeyName('api_keys_user');
    table
      .specificType('project_id', 'text collate "C"')
      .references('projects.id')
      .onDelete('cascade')
      .withKeyName('api_keys_project');
    table.specificType('scopes', 'text[]');
    table.specificType('project_ids', 'text[]');
    table.text('created_by');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('expires_at', 'timestamptz(3)');
    table.specificType('last_used_at', 'timestamptz(3)');
    table.specificType('revoked_at', 'timestamptz(3)');
    table.unique(['hash'], { indexName: 'api_keys_hash' });
    table.index(['user_id', 'id'], 'api_keys_by_user');
    table.index(['project_id', 'id'], 'api_keys_by_project');
    table.check(`kind in ('personal', 'project')`, [], 'api_keys_kind');
    table.check(
      `(kind = 'personal') = (user_id is not null) and (kind = 'project') = (project_id is not null)`,
      [],
      'api_keys_owner',
    );
  });
}
