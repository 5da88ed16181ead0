import type { Knex } from 'knex';

/** What takes changes back, sealed, for some days; and which entry took back which. */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  `alter table activity add column reverts text, add column reverted_by text,
    add column revert_obstacle text default 'not_kept'`,
  `create table activity_undos (
    id text collate "C" constraint activity_undos_pkey primary key,
    project_id text collate "C" not null,
    undo text not null,
    created_at timestamptz(3) not null
  )`,
  'create index activity_undos_by_age on activity_undos (created_at)',
  'create index activity_undos_by_project on activity_undos (project_id, id)',
];
