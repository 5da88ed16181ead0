import type { Knex } from 'knex';
import { resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('projects', (table) => {
    resourceColumns(table);
    table.text('account_id').notNullable().references('accounts.id').withKeyName('projects_account');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('description');
    table.text('default_region').notNullable();
    table.specificType('deleted_at', 'timestamptz(3)');
    table.index(['account_id'], 'projects_by_account');
  });
  await knex.schema.createTable('members', (table) => {
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .onDelete('cascade')
      .withKeyName('members_project');
    table
      .specificType('user_id', 'text collate "C"')
      .notNullable()
      .references('users.id')
      .onDelete('cascade')
      .withKeyName('members_user');
    table.text('role').notNullable();
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.primary(['user_id', 'project_id'], { constraintName: 'members__already_exists' });
    table.index(['project_id', 'user_id'], 'members_by_project');
    table.check(`role in ('owner', 'developer', 'viewer')`, [], 'members_role');
  });
}
