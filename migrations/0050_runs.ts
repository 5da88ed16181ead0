import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/** Commands that run once in the environment of an application. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('runs', (table) => {
    resourceColumns(table);
    loopColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('runs_project');
    // Its job stops the run before the row goes, so that the row of the application waits for it.
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .withKeyName('runs_application');
    table.specificType('preview_id', 'text collate "C"');
    // Releases are forgotten when nothing runs them; a finished run still names its own.
    table.specificType('release_id', 'text collate "C"').notNullable();
    table.specificType('deployment_id', 'text collate "C"').notNullable();
    table.text('command').notNullable();
    table.text('process_type').notNullable();
    table.specificType('env', 'text[]').notNullable().defaultTo('{}');
    // Sealed; null where there are none, and once the run has ended.
    table.text('variables');
    table.text('application_type').notNullable();
    table.integer('timeout_seconds').notNullable();
    table.boolean('tty').notNullable().defaultTo(false);
    table.boolean('detached').notNullable().defaultTo(true);
    table.text('status').notNullable().defaultTo('queued');
    table.text('status_reason');
    table.integer('exit_code');
    table.text('signal');
    table.text('trigger_type').notNullable().defaultTo('api');
    table.specificType('trigger_id', 'text collate "C"');
    table.specificType('cancel_requested_at', 'timestamptz(3)');
    table.specificType('started_at', 'timestamptz(3)');
    table.specificType('finished_at', 'timestamptz(3)');
    table.check(
      `status in ('queued', 'starting', 'running', 'succeeded', 'failed', 'canceled', 'timed_out')`,
      [],
      'runs_status',
    );
    table.check(`trigger_type in ('api', 'schedule', 'release')`, [], 'runs_trigger');
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

const INDEXES = [
  'create index runs_due on runs (next_at) where next_at is not null',
  'create index runs_by_id on runs (application_id, id)',
  'create index runs_by_status on runs (application_id, status, id)',
  'create index runs_by_process_type on runs (application_id, process_type, id)',
  'create index runs_by_trigger on runs (application_id, trigger_type, id)',
  'create index runs_by_preview on runs (application_id, preview_id, id)',
  'create index runs_of_trigger on runs (trigger_id) where trigger_id is not null',
  'create index runs_of_project on runs (project_id)',
  `create index runs_unfinished on runs (deployment_id) where status in ('queued', 'starting', 'running')`,
  'create index runs_finished on runs (finished_at) where finished_at is not null',
];
