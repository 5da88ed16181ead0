import type { Knex } from 'knex';

/** Notifiers and Git integrations stay for a time after they were deleted (docs/decisions/0230). */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  'alter table notifiers add column deleted_at timestamptz(3)',
  'alter table git_integrations add column deleted_at timestamptz(3)',
  'drop index git_integrations__already_exists',
  `create unique index git_integrations__already_exists on git_integrations
    (project_id, provider, coalesce(base_url, ''), account_id) where account_id is not null and deleted_at is null`,
  // The bin is filtered by name.
  'create index deleted_resources_by_name on deleted_resources (project_id, name, id)',
];
