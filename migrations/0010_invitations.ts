import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('invitations', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .onDelete('cascade')
      .withKeyName('invitations_project');
    table.text('email').notNullable();
    table.text('role').notNullable();
    table.text('hash').notNullable();
    table
      .specificType('invited_by', 'text collate "C"')
      .notNullable()
      .references('users.id')
      .onDelete('cascade')
      .withKeyName('invitations_user');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('expires_at', 'timestamptz(3)').notNullable();
    table.unique(['hash'], { indexName: 'invitations_hash' });
    table.unique(['project_id', 'email'], { indexName: 'invitations__already_exists__email' });
    table.index(['project_id', 'id'], 'invitations_by_project');
    table.check(`role in ('owner', 'developer', 'viewer')`, [], 'invitations_role');
  });
}
