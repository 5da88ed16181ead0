import type { Knex } from 'knex';
import { resourceColumns } from './frozen/columns';

/**
 * Observers, the schedule of their checks, results (one partition for each day), incidents, and the outbox of messages.
 * The outbox is written in the transaction of what it tells of, so no message is lost and none is made twice.
 */
export async function up(knex: Knex): Promise<void> {
  await createNotifiers(knex);
  await createObservers(knex);
  for (const sql of [...CHECKS, ...RESULTS, ...INCIDENTS, ...NOTIFICATIONS, ...REGIONS]) await knex.raw(sql);
}

async function createNotifiers(knex: Knex): Promise<void> {
  await knex.schema.createTable('notifiers', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('type').notNullable();
    // As it is shown; the whole one is sealed.
    table.jsonb('config').notNullable();
    table.text('sealed_config').notNullable();
    table.specificType('events', 'text[]').notNullable().defaultTo('{}');
    table.boolean('enabled').notNullable().defaultTo(true);
    table.jsonb('last_delivery');
    table.bigInteger('observed_generation').notNullable().defaultTo(0);
  });
  await knex.raw('create index notifiers_by_id on notifiers (project_id, id)');
  await knex.raw('create index notifiers_by_name on notifiers (project_id, name, id)');
  await knex.raw('create index notifiers_by_type on notifiers (project_id, type, id)');
  await knex.raw(`create index notifiers_of_activity on notifiers (project_id) where enabled and events <> '{}'`);
}

async function createObservers(knex: Knex): Promise<void> {
  await knex.schema.createTable('observers', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('type').notNullable();
    table.boolean('enabled').notNullable().defaultTo(true);
    table.jsonb('uptime');
    table.text('sealed_headers');
    table.jsonb('metric');
    table.specificType('resource_id', 'text collate "C"');
    table.integer('interval_seconds').notNullable();
    table.integer('failure_threshold').notNullable();
    table.integer('recovery_threshold').notNullable();
    table.specificType('notifier_ids', 'text[]').notNullable().defaultTo('{}');
    table.integer('reminder_minutes');
    table.text('status').notNullable();
    table.jsonb('last_result');
    table.specificType('open_incident_id', 'text collate "C"');
    // When the metric was last heard of.
    table.specificType('data_at', 'timestamptz(3)').notNullable();
    table.bigInteger('observed_generation').notNullable().defaultTo(0);
    table.check('(uptime is null) <> (metric is null)', [], 'observers_of_one_type');
  });
  // Every result updates the row: with room on the page no index is touched.
  await knex.raw('alter table observers set (fillfactor = 60)');
  await knex.raw('create index observers_by_id on observers (project_id, id)');
  await knex.raw('create index observers_by_name on observers (project_id, name, id)');
  await knex.raw('create index observers_by_type on observers (project_id, type, id)');
  await knex.raw('create index observers_by_status on observers (project_id, status, id)');
  await knex.raw('create index observers_by_resource on observers (resource_id, id) where resource_id is not null');
  await knex.raw('create index observers_by_notifier on observers using gin (notifier_ids)');
}

const CHECKS = [
  // One row for each place that an observer is checked from. check_at is the next check, or, while one runs, when it is
  // given up for lost: fence tells its result from that of the next one.
  `create table observer_checks (
    observer_id text collate "C" not null references observers (id) on delete cascade,
    region text collate "C" not null,
    check_at timestamptz(3) not null,
    fence bigint not null default 0,
    failures integer not null default 0,
    passes integer not null default 0,
    result_at timestamptz(3),
    primary key (observer_id, region)
  ) with (fillfactor = 60)`,
  'create index observer_checks_due on observer_checks (region, check_at)',
];

const RESULTS = [
  `create table check_results (
    id text collate "C" not null,
    project_id text collate "C" not null,
    observer_id text collate "C" not null,
    checked_at timestamptz(3) not null,
    status text not null,
    region text not null,
    response_time_ms real,
    status_code integer,
    value double precision,
    error text,
    incident_id text collate "C",
    timings jsonb,
    certificate_expires_at timestamptz(3)
  ) partition by range (checked_at)`,
  'create index check_results_of_observer on check_results (observer_id, id)',
  'create index check_results_by_status on check_results (observer_id, status, id)',
  'create index check_results_by_region on check_results (observer_id, region, id)',
  `create index check_results_failed on check_results (observer_id, id) where status = 'fail'`,
  // What uptime_percent_30d is made of.
  `create table observer_days (
    observer_id text collate "C" not null references observers (id) on delete cascade,
    day date not null,
    checks integer not null,
    passes integer not null,
    primary key (observer_id, day)
  ) with (fillfactor = 60)`,
  // As before, with the table of results; its rows are kept by another column of time.
  `create or replace function make_observation_day(day date) returns void language plpgsql as $$
    declare
      parent text;
      child text;
    begin
      foreach parent in array array['log_lines', 'metric_points', 'check_results'] loop
        child := parent || '_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass(child) is not null;
        perform pg_advisory_xact_lock(7270014);
        continue when exists (select from pg_class where relname = child and relnamespace = 'public'::regnamespace);
        execute format('create table %I (like %I including defaults including constraints)', child, parent);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, child,
          day || 'T00:00:00Z', (day + 1) || 'T00:00:00Z');
      end loop;
    end $$`,
  `create or replace function drop_observation_days(before date)
      returns setof boolean language plpgsql set lock_timeout = '500ms' as $$
    declare
      child text;
    begin
      for child in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in ('log_lines'::regclass, 'metric_points'::regclass, 'check_results'::regclass)
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

const INCIDENTS = [
  `create table incidents (
    id text collate "C" primary key,
    project_id text collate "C" not null,
    observer_id text collate "C" not null references observers (id) on delete cascade,
    status text not null,
    cause text not null,
    started_at timestamptz(3) not null,
    resolved_at timestamptz(3),
    remind_at timestamptz(3)
  )`,
  'create index incidents_of_observer on incidents (observer_id, id)',
  'create index incidents_by_status on incidents (observer_id, status, id)',
  // The database keeps it too: one at a time.
  `create unique index incidents_open on incidents (observer_id) where status = 'open'`,
  `create index incidents_to_remind on incidents (remind_at) where remind_at is not null`,
  `create index incidents_by_age on incidents (started_at) where status = 'resolved'`,
];

const NOTIFICATIONS = [
  // The outbox. next_at is the next attempt, or, while one runs, when it is given up for lost.
  `create table notifications (
    seq bigint generated always as identity primary key,
    message_id text collate "C" not null,
    project_id text collate "C" not null,
    notifier_id text collate "C" not null,
    incident_id text collate "C",
    event text not null,
    subject text collate "C" not null,
    data jsonb not null,
    status text not null default 'pending',
    attempts integer not null default 0,
    fence bigint not null default 0,
    next_at timestamptz(3) not null default now(),
    created_at timestamptz(3) not null default now(),
    sent_at timestamptz(3),
    duration_ms integer,
    status_code integer,
    error text,
    constraint notifications_once unique (notifier_id, message_id)
  )`,
  `create index notifications_due on notifications (next_at) where status = 'pending'`,
  // What a receiver is told of one subject comes in its order.
  `create index notifications_in_order on notifications (notifier_id, subject, seq) where status = 'pending'`,
  'create index notifications_of_incident on notifications (incident_id, seq) where incident_id is not null',
  `create index notifications_by_age on notifications (created_at) where status <> 'pending'`,
  // Entries of the activity log for those who have subscribed, in the transaction of the entry.
  `create function notify_of_activity() returns trigger language plpgsql as $$
    begin
      insert into notifications (message_id, project_id, notifier_id, event, subject, data)
      select new.id, new.project_id, n.id, 'activity', new.resource_id, jsonb_build_object(
        'id', new.id, 'project_id', new.project_id, 'action', new.action, 'outcome', new.outcome, 'actor', new.actor,
        'key_id', new.key_id,
        'resource', jsonb_build_object('type', new.resource_type, 'id', new.resource_id, 'name', new.resource_name),
        'changed_fields', to_jsonb(new.changed_fields), 'request_id', new.request_id,
        'created_at', to_char(new.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      from notifiers n where n.project_id = new.project_id and n.enabled and n.events <> '{}'
        and exists (select from unnest(n.events) as e (pattern)
          where new.action like replace(replace(e.pattern, '_', '\\_'), '*', '%'));
      return null;
    end $$`,
  `create trigger activity_notifies after insert on activity for each row when (new.project_id is not null)
    execute function notify_of_activity()`,
];

const REGIONS = [
  // Where checks run from beside this installation: `npm run probe` elsewhere, with a key of its own.
  `create table probes (
    id text collate "C" primary key,
    region text collate "C" not null,
    key_hash bytea not null unique,
    created_at timestamptz(3) not null default now(),
    seen_at timestamptz(3)
  )`,
  'create index probes_by_region on probes (region)',
  // Since when the results of a region are not counted, because its own network seems to be down.
  `create table monitored_regions (
    region text collate "C" primary key,
    suspended_at timestamptz(3),
    reason text
  )`,
];
