import type { Knex } from 'knex';

/** Alarms of the installation, who is told of them, and which process evaluates them. */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  `create table installation_alarms (
    id text collate "C" constraint installation_alarms_pkey primary key,
    name text collate "C" not null,
    -- What it is about, such as a directory; empty where there is one of the name.
    subject text collate "C" not null,
    level integer not null,
    -- The highest of which somebody was told; null: it has not lasted long enough.
    announced_level integer,
    title text not null,
    detail text not null,
    begun_at timestamptz(3) not null default now(),
    announced_at timestamptz(3),
    clear_since timestamptz(3),
    ended_at timestamptz(3)
  )`,
  'create unique index installation_alarms_open on installation_alarms (name, subject) where ended_at is null',
  'create index installation_alarms_by_age on installation_alarms (ended_at) where ended_at is not null',
  `create table alarm_notifiers (
    notifier_id text collate "C" constraint alarm_notifiers_pkey primary key
      references notifiers (id) on delete cascade,
    created_at timestamptz(3) not null default now()
  )`,
  `create table alarm_evaluations (
    id boolean constraint alarm_evaluations_pkey primary key default true check (id),
    holder text,
    held_until timestamptz(3) not null default now(),
    evaluated_at timestamptz(3)
  )`,
  'insert into alarm_evaluations default values',
];
