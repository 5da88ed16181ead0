import type { Knex } from 'knex';

const statements = [
  // What processes and machines report of themselves for operators: a row each, which is replaced.
  `create table installation_reports (
    machine text not null,
    name text not null,
    facts jsonb not null,
    reported_at timestamptz(3) not null default now(),
    constraint installation_reports_pkey primary key (machine, name)
  )`,
  // What an operator does at the terminal belongs to no account.
  'alter table activity alter column account_id drop not null',
  // The activity of all projects is read by person and by action, too. On expressions: what is asked of one project has
  // indexes that begin with it, and is not to be answered by these.
  `create index activity_of_all_by_actor on activity (coalesce(actor_id, ''), id)`,
  'create index activity_of_all_by_action on activity (lower(action), id)',
];

export async function up(knex: Knex): Promise<void> {
  for (const statement of statements) await knex.raw(statement);
}
