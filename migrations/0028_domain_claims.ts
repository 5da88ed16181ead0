import type { Knex } from 'knex';

/**
 * A claim of a host name blocks nobody outside its project: the name is unique among those that are proven
 * (docs/decisions/rules.md §41). Both hold for rows in tear-down too, until their end.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table domains drop constraint domains__domain_taken__hostname');
  await knex.raw('create unique index domains__domain_taken__hostname on domains (project_id, hostname)');
  await knex.raw(`create unique index domains__domain_taken on domains (hostname) where status = 'active'`);
}
