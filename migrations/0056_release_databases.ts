import type { Knex } from 'knex';

/** Databases whose variables a release has: a cluster reaches them at another address than this host. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table releases add column databases jsonb not null default '[]'`);
}
