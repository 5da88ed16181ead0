import type { Knex } from 'knex';

/** What waits a day: a purge, and what a new owner may do to older ones. Kept: robot accounts, and keys of zones. */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  'alter table deleted_resources add column purge_from timestamptz(3) not null default now()',
  // Those who are owners by now have been for long enough.
  `alter table members add column owner_since timestamptz(3) not null default '2000-01-01'`,
  'alter table members alter column owner_since set default now()',
  'alter table dns_zones add column retired_signing_keys text',
  'alter table robot_accounts add column deleted_at timestamptz(3)',
  'drop index robot_accounts__name_taken__name',
  `create unique index robot_accounts__name_taken__name on robot_accounts (project_id, name)
    where deleted_at is null`,
];
