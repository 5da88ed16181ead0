import type { Knex } from 'knex';

/**
 * Lines of logs and points of metrics, in one partition for each day (UTC). Partitions are made and dropped while the
 * platform runs (models/observers/observation_day.ts), so that keeping them for a time costs no deleting of rows.
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of [...LOG_LINES, ...METRIC_POINTS, ...DAYS]) await knex.raw(sql);
  // How much of the output of a unit is in log_lines. Written in the transaction of the lines.
  await knex.schema.createTable('log_positions', (table) => {
    table.specificType('unit_id', 'text collate "C"').primary();
    table.text('position').notNullable();
    table.specificType('updated_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
  });
}

const LOG_LINES = [
  'create sequence log_lines_seq',
  // resource_id: whose log it is, the preview or the application. One column: an index gives no order behind `is null`.
  // tx: the transaction that wrote the line, by which readers know what they have not seen
  // (models/applications/log_line/tail.ts).
  `create table log_lines (
    at timestamptz(3) not null,
    seq bigint not null default nextval('log_lines_seq'),
    tx xid8 not null default pg_current_xact_id(),
    resource_id text collate "C" not null,
    project_id text collate "C" not null,
    application_id text collate "C",
    preview_id text collate "C",
    deployment_id text collate "C",
    instance_id text collate "C",
    process_type text,
    source text not null,
    step text,
    level text not null,
    message text not null
  ) partition by range (at)`,
  'create index log_lines_of_resource on log_lines (resource_id, at, seq) where step is null',
  'create index log_lines_arriving on log_lines (resource_id, tx, seq) where step is null',
  // What may be rare among many lines, and what one looks for.
  `create index log_lines_by_level on log_lines (resource_id, level, at, seq) where step is null and level <> 'info'`,
  `create index log_lines_by_source on log_lines (resource_id, source, at, seq) where step is null and source <> 'app'`,
  'create index log_lines_of_deployment on log_lines (deployment_id, at, seq) where step is not null',
  'create index log_lines_arriving_of_deployment on log_lines (deployment_id, tx, seq) where step is not null',
];

const METRIC_POINTS = [
  // What was sampled in one minute: the mean is total / samples; of what is counted, total is the count. buckets: the
  // histogram of response times (core/log/latency.ts).
  `create table metric_points (
    at timestamptz(3) not null,
    project_id text collate "C" not null,
    resource_id text collate "C" not null,
    part_id text collate "C" not null,
    metric text collate "C" not null,
    samples integer not null,
    total double precision not null,
    buckets bigint[],
    constraint metric_points_pkey primary key (resource_id, metric, part_id, at)
  ) partition by range (at)`,
];

// Attaching locks the parent less than creating as a partition does: reads and writes go on. The advisory lock is for
// two processes that miss the same day; behind it the catalog is read as a table, since to_regclass may answer from a
// cache that has not heard of the other one.
const DAYS = [
  `create function make_observation_day(day date) returns void language plpgsql as $$
    declare
      parent text;
      child text;
    begin
      foreach parent in array array['log_lines', 'metric_points'] loop
        child := parent || '_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass(child) is not null;
        perform pg_advisory_xact_lock(7270014);
        continue when exists (select from pg_class where relname = child and relnamespace = 'public'::regnamespace);
        execute format('create table %I (like %I including defaults including constraints)', child, parent);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, child,
          day || 'T00:00:00Z', (day + 1) || 'T00:00:00Z');
      end loop;
    end $$`,
  // Days before the given one: true for each that was dropped, false for one that was in use.
  `create function drop_observation_days(before date)
      returns setof boolean language plpgsql set lock_timeout = '500ms' as $$
    declare
      child text;
    begin
      for child in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in ('log_lines'::regclass, 'metric_points'::regclass)
          and right(c.relname, 8) < to_char(before, 'YYYYMMDD') order by 1
      loop
        begin
          execute format('drop table %I', child);
          return next true;
        exception when lock_not_available then
          return next false;
        end;
      end loop;
    end $$`,
];
