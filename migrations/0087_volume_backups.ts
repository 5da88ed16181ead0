import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/** Backups of volumes, when they are due, and the restores of volumes. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('volume_backups', (table) => {
    resourceColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('volume_backups_project');
    table
      .specificType('volume_id', 'text collate "C"')
      .notNullable()
      .references('volumes.id')
      .withKeyName('volume_backups_volume');
    table.text('type').notNullable();
    table.text('note');
    table.text('consistency');
    table.bigInteger('size_bytes');
    table.integer('volume_size_gb').notNullable();
    // What a restore needs room for.
    table.bigInteger('content_bytes');
    // Sealed: what the archive is encrypted with.
    table.text('passphrase').notNullable();
    table.specificType('started_at', 'timestamptz(3)');
    table.specificType('finished_at', 'timestamptz(3)');
    table.specificType('expires_at', 'timestamptz(3)');
    table.text('status').notNullable().defaultTo('pending');
    table.text('status_reason');
    loopColumns(table);
    table.check(`type in ('scheduled', 'manual')`, [], 'volume_backups_type');
  });
  await knex.schema.alterTable('volumes', (table) => {
    table.text('backup_schedule');
    table.integer('backup_retention_days').notNullable().defaultTo(7);
    table.specificType('next_backup_at', 'timestamptz(3)');
    // The backup whose files the volume is to get, and what tells this restore from others of the same backup.
    table.jsonb('restoring_from');
    // Why the last restore failed.
    table.text('restore_failure');
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

const INDEXES = [
  `create unique index volume_backups__resource_busy on volume_backups (volume_id)
    where status in ('pending', 'running') and deleted_at is null`,
  'create index volume_backups_by_id on volume_backups (volume_id, id) where deleted_at is null',
  'create index volume_backups_by_type on volume_backups (volume_id, type, id) where deleted_at is null',
  'create index volume_backups_by_status on volume_backups (volume_id, status, id) where deleted_at is null',
  `create index volume_backups_by_expiry on volume_backups (expires_at)
    where expires_at is not null and deleted_at is null`,
  'create index volume_backups_of_volume on volume_backups (volume_id)',
  'create index volume_backups_of_project on volume_backups (project_id)',
  'create index volume_backups_due on volume_backups (next_at) where next_at is not null',
  `create index volumes_backup_due on volumes (next_backup_at)
    where next_backup_at is not null and deleted_at is null`,
];
