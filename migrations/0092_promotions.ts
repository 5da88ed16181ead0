import type { Knex } from 'knex';

/** A deployment of what another application runs. Files that one waits for are found by its origin. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table deployments add column promoted_from jsonb');
  await knex.raw(`create index deployments_promoted_from on deployments ((promoted_from ->> 'deployment_id'))
    where promoted_from is not null`);
}
