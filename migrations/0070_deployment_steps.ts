import type { Knex } from 'knex';

/** Steps of deployments that have begun, in their order, with the time at which each began. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table deployments add column steps jsonb not null default '[]'`);
}
