import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/** Imports of data into databases. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_imports', (table) => {
    resourceColumns(table);
    loopColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('database_imports_project');
    table
      .specificType('database_id', 'text collate "C"')
      .notNullable()
      .references('databases.id')
      .onDelete('cascade')
      .withKeyName('database_imports_database');
    table.text('mode').notNullable();
    table.text('source_address');
    // Sealed; null for an upload, and once the import has ended.
    table.text('sealed_source');
    table.bigInteger('bytes_max').notNullable();
    table.specificType('exclude', 'text[]').notNullable().defaultTo('{}');
    table.bigInteger('size_bytes');
    table.bigInteger('bytes_read').notNullable().defaultTo(0);
    table.jsonb('tables').notNullable().defaultTo('[]');
    table.jsonb('not_taken_over').notNullable().defaultTo('[]');
    table.specificType('upload_expires_at', 'timestamptz(3)');
    table.specificType('cancel_requested_at', 'timestamptz(3)');
    table.specificType('started_at', 'timestamptz(3)');
    table.specificType('finished_at', 'timestamptz(3)');
    table.text('status').notNullable();
    table.text('status_reason');
    table.check(
      `status in ('awaiting_upload', 'pending', 'running', 'completed', 'failed', 'canceled')`,
      [],
      'database_imports_status',
    );
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

const INDEXES = [
  'create index database_imports_due on database_imports (next_at) where next_at is not null',
  'create index database_imports_by_id on database_imports (database_id, id)',
  'create index database_imports_by_status on database_imports (database_id, status, id)',
  'create index database_imports_of_project on database_imports (project_id)',
  `create unique index database_imports__resource_busy on database_imports (database_id)
    where status in ('awaiting_upload', 'pending', 'running') and deleted_at is null`,
];
