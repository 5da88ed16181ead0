import type { Knex } from 'knex';

/** Which data directory has the files of a deployment: workers on other machines do not reach them. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table deployments add column files_on text');
}
