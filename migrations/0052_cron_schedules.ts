import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/**
 * Commands that run at certain times, and what became of each of these times. `schedules` are the tasks of the platform
 * itself.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('cron_schedules', (table) => {
    resourceColumns(table);
    loopColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('cron_schedules_project');
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .onDelete('cascade')
      .withKeyName('cron_schedules_application');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('cron').notNullable();
    table.text('time_zone').notNullable();
    table.text('command').notNullable();
    table.text('process_type');
    table.text('application_type');
    table.integer('timeout_seconds').notNullable();
    table.text('concurrency').notNullable();
    table.text('missed').notNullable();
    table.boolean('enabled').notNullable();
    table.text('status_reason');
    table.specificType('next_run_at', 'timestamptz(3)');
    // Of the trigger below.
    table.jsonb('last_run');
    table.integer('failures_in_a_row').notNullable().defaultTo(0);
    table.check(`concurrency in ('forbid', 'allow', 'replace')`, [], 'cron_schedules_concurrency');
    table.check(`missed in ('skip', 'run_once')`, [], 'cron_schedules_missed');
    table.check(`enabled = (next_run_at is not null)`, [], 'cron_schedules_next_run');
  });
  for (const sql of [...INDEXES, ...FIRINGS, ...RUNS]) await knex.raw(sql);
}

const INDEXES = [
  'create index cron_schedules_due on cron_schedules (next_at) where next_at is not null',
  'create index cron_schedules_by_id on cron_schedules (application_id, id)',
  'create index cron_schedules_by_name on cron_schedules (application_id, name, id)',
  'create index cron_schedules_by_enabled on cron_schedules (application_id, enabled, id)',
  'create index cron_schedules_of_project on cron_schedules (project_id)',
  `create unique index cron_schedules__name_taken__name on cron_schedules (application_id, name)
    where deleted_at is null`,
];

const FIRINGS = [
  // A due time, and what became of it. The key is why none starts two runs.
  `create table schedule_firings (
    schedule_id text collate "C" not null constraint schedule_firings_schedule references cron_schedules (id)
      on delete cascade,
    due_at timestamptz(3) not null,
    fired_at timestamptz(3) not null,
    outcome text not null
      constraint schedule_firings_outcome check (outcome in ('started', 'skipped', 'missed', 'failed')),
    reason text,
    run_id text collate "C",
    -- Earlier due times that this one stands for.
    missed_count integer not null,
    constraint schedule_firings_pkey primary key (schedule_id, due_at)
  )`,
  'create index schedule_firings_by_age on schedule_firings (fired_at)',
];

const RUNS = [
  "create index runs_unfinished_of_trigger on runs (trigger_id) where status in ('queued', 'starting', 'running')",
  // Whatever starts or ends a run, its schedule shows it, in the same transaction.
  `create function note_run_of_schedule() returns trigger language plpgsql as $$
    declare
      shown jsonb := jsonb_build_object('id', new.id, 'status', new.status, 'finished_at',
        to_char(new.finished_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
    begin
      if tg_op = 'INSERT' then
        update cron_schedules set last_run = shown, observed_generation = observed_generation + 1
          where id = new.trigger_id;
      elsif (old.status, old.finished_at) is distinct from (new.status, new.finished_at) then
        update cron_schedules set last_run = case when last_run ->> 'id' = new.id then shown else last_run end,
          failures_in_a_row = case
            when old.status = new.status then failures_in_a_row
            when new.status = 'succeeded' then 0
            when new.status in ('failed', 'timed_out') then failures_in_a_row + 1
            else failures_in_a_row end,
          observed_generation = observed_generation + 1
          where id = new.trigger_id;
      end if;
      return null;
    end $$`,
  `create trigger runs_note_schedule after insert or update of status, finished_at on runs for each row
    when (new.trigger_type = 'schedule') execute function note_run_of_schedule()`,
];
