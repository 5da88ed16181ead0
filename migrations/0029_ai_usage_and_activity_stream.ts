import type { Knex } from 'knex';

/**
 * What the inference gateway has reported: sums by model and day, and the ids of the events that are in them. And the
 * activity log in the order in which its readers see it (models/base/arrivals.ts).
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  `create table ai_usage (
    project_id text collate "C" not null constraint ai_usage_project references projects (id),
    date date not null,
    model_id text collate "C" not null,
    requests bigint not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    errors bigint not null,
    constraint ai_usage_pkey primary key (project_id, date, model_id)
  )`,
  'create index ai_usage_by_model on ai_usage (project_id, model_id, date)',
  // An event counts once, however often the gateway sends it. Ids are kept longer than events are accepted.
  `create table ai_usage_events (
    id text collate "C" constraint ai_usage_events_pkey primary key,
    received_at timestamptz(3) not null default now()
  )`,
  'create index ai_usage_events_by_age on ai_usage_events (received_at)',
  'create sequence activity_seq',
  `alter table activity add column tx xid8 not null default pg_current_xact_id(),
    add column seq bigint not null default nextval('activity_seq')`,
  'create index activity_arriving on activity (project_id, tx, seq)',
];
