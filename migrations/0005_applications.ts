import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('applications', (table) => {
    resourceColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('applications_project');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('description');
    table.text('region').notNullable();
    table.text('application_type').notNullable();
    table.jsonb('source');
    table.text('preset');
    table.text('default_hostname').notNullable();
    table.text('status').notNullable().defaultTo('new');
    table.text('status_reason');
    table.text('current_deployment_id');
    table.boolean('auto_deploy_enabled').notNullable().defaultTo(false);
    table.jsonb('settings').notNullable().defaultTo('{}');
    loopColumns(table);
    table.unique(['default_hostname'], { indexName: 'applications_hostname' });
  });
  await knex.schema.createTable('processes', (table) => {
    resourceColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('processes_project');
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .onDelete('cascade')
      .withKeyName('processes_application');
    table.specificType('type', 'text collate "C"').notNullable();
    table.text('command');
    table.text('application_type');
    table.integer('instances').notNullable().defaultTo(0);
    table.jsonb('autoscaling');
    table.integer('running_instances').notNullable().defaultTo(0);
    table.text('status').notNullable().defaultTo('idle');
    table.unique(['application_id', 'type'], { indexName: 'processes__already_exists' });
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

// The second column of each sort and filter index is the id: pages walk it.
const INDEXES = [
  'create unique index applications__name_taken__name on applications (project_id, name) where deleted_at is null',
  'create index applications_by_id on applications (project_id, id) where deleted_at is null',
  'create index applications_by_name on applications (project_id, name, id) where deleted_at is null',
  'create index applications_by_update on applications (project_id, updated_at, id) where deleted_at is null',
  'create index applications_by_status on applications (project_id, status, id) where deleted_at is null',
  'create index applications_by_region on applications (project_id, region, id) where deleted_at is null',
  'create index applications_by_type on applications (project_id, application_type, id) where deleted_at is null',
  'create index applications_due on applications (next_at) where next_at is not null',
];
