import type { Knex } from 'knex';
import { resourceColumns } from './frozen/columns';

/** Archives that are uploaded as the source of a deployment, and which directory of the host keeps them. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('source_uploads', (table) => {
    resourceColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('source_uploads_project');
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .onDelete('CASCADE')
      .withKeyName('source_uploads_application');
    table.text('status').notNullable().defaultTo('waiting');
    table.text('status_reason');
    // What the client said of the archive; of one that is ready what was received.
    table.specificType('sha256', 'text collate "C"');
    table.bigInteger('size_bytes');
    table.bigInteger('bytes_max').notNullable();
    table.specificType('expires_at', 'timestamptz(3)').notNullable();
    // A request that sends the archive renews it; a process that was killed frees the upload by it.
    table.specificType('receiving_until', 'timestamptz(3)');
    table.specificType('last_used_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.check(`status in ('waiting', 'ready', 'refused')`, [], 'source_uploads_status');
    table.check(`status <> 'ready' or (sha256 is not null and size_bytes is not null)`, [], 'source_uploads_ready');
  });
  await knex.schema.createTable('host_directories', (table) => {
    table.specificType('name', 'text collate "C"').primary();
    table.text('mark').notNullable();
    table.specificType('updated_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

const INDEXES = [
  'create index source_uploads_by_id on source_uploads (application_id, id)',
  'create index source_uploads_by_status on source_uploads (application_id, status, id)',
  'create index source_uploads_of_project on source_uploads (project_id)',
  'create index source_uploads_unused on source_uploads (last_used_at)',
  `create index deployments_of_upload on deployments ((source ->> 'source_upload_id'))
    where source ->> 'source_upload_id' is not null`,
];
