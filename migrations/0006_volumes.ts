import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('volumes', (table) => {
    resourceColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('volumes_project');
    table.specificType('name', 'text collate "C"').notNullable();
    table.integer('size_gb').notNullable();
    table.text('region').notNullable();
    table
      .specificType('application_id', 'text collate "C"')
      .references('applications.id')
      .withKeyName('volumes_application');
    table.text('mount_path');
    table.text('status').notNullable().defaultTo('provisioning');
    table.text('status_reason');
    table.text('enforcement');
    table.bigInteger('used_bytes');
    table.boolean('over_quota').notNullable().defaultTo(false);
    loopColumns(table);
    table.check('(application_id is null) = (mount_path is null)', [], 'volumes_mount');
    table.check('size_gb > 0', [], 'volumes_size');
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

const INDEXES = [
  'create unique index volumes__name_taken__name on volumes (project_id, name) where deleted_at is null',
  `create unique index volumes__mount_path_taken on volumes (application_id, mount_path)
    where deleted_at is null and application_id is not null`,
  'create index volumes_by_id on volumes (project_id, id) where deleted_at is null',
  'create index volumes_by_name on volumes (project_id, name, id) where deleted_at is null',
  'create index volumes_by_size on volumes (project_id, size_gb, id) where deleted_at is null',
  'create index volumes_by_status on volumes (project_id, status, id) where deleted_at is null',
  'create index volumes_by_region on volumes (project_id, region, id) where deleted_at is null',
  // All rows: the foreign key asks for those in tear-down too when an application is purged.
  'create index volumes_by_application on volumes (application_id, id) where application_id is not null',
  'create index volumes_due on volumes (next_at) where next_at is not null',
];
