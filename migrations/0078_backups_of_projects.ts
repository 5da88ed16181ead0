import type { Knex } from 'knex';

/** Backups are listed by project, also those of deleted databases. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`create index database_backups_of_project_by_id on database_backups (project_id, id)
    where deleted_at is null`);
}
