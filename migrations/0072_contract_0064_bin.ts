import type { Knex } from 'knex';
import { resourceColumns } from './frozen/columns';

/** The bin: deleted resources that can be restored (docs/decisions/0230). */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('deleted_resources', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.text('resource_type').notNullable();
    table.specificType('resource_id', 'text collate "C"').notNullable();
    table.specificType('name', 'text collate "C"');
    table.specificType('kept_until', 'timestamptz(3)').notNullable();
    // Ids of rows of other kinds that went with it, and come back with it.
    table.specificType('along', 'text[] collate "C"').notNullable().defaultTo('{}');
    // What was taken from other resources, and is given back.
    table.jsonb('memo').notNullable().defaultTo('{}');
  });
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  'create unique index deleted_resources_resource on deleted_resources (resource_id)',
  'create index deleted_resources_by_id on deleted_resources (project_id, id)',
  'create index deleted_resources_by_type on deleted_resources (project_id, resource_type, id)',
  'create index deleted_resources_along on deleted_resources using gin (along)',
  'create index deleted_resources_due on deleted_resources (kept_until)',
  'alter table observers add column deleted_at timestamptz(3)',
  // When an engine gave up what is in the bin: its name is free then.
  'alter table buckets add column parked_at timestamptz(3)',
  'drop index buckets__name_taken__name',
  'create unique index buckets__name_taken__name on buckets (name) where parked_at is null',
  // Those of applications in the bin.
  'alter table database_attachments add column deleted_at timestamptz(3)',
];
