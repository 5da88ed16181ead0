import type { Knex } from 'knex';

/** Whether a key may delete. Keys that exist keep that right. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table api_keys add column may_destroy boolean not null default true');
}
