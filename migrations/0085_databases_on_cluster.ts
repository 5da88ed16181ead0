import type { Knex } from 'knex';

/** Databases whose server runs in the cluster, and what their clients connect to. */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  'alter table databases add column on_cluster boolean not null default false',
  // null: the host.
  'alter table database_endpoints add column host text',
];
