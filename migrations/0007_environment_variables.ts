import type { Knex } from 'knex';
import { resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('environment_variables', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .onDelete('cascade')
      .withKeyName('environment_variables_application');
    table.specificType('key', 'text collate "C"').notNullable();
    table.text('value').notNullable();
    table.text('value_hash').notNullable();
    table.text('available_at').notNullable().defaultTo('both');
    table.text('managed_by');
    table.unique(['application_id', 'key'], { indexName: 'environment_variables_key' });
    table.index(['application_id', 'id'], 'environment_variables_by_id');
    table.index(['application_id', 'available_at', 'id'], 'environment_variables_by_available_at');
    table.check(`available_at in ('build', 'runtime', 'both')`, [], 'environment_variables_available_at');
  });
}
