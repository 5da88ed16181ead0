import type { Knex } from 'knex';

/**
 * Since when the name server answers a DNS challenge whose name alone is delegated here. And whose order it was, since
 * accounts share the limits of the authority; null: of the platform, or of before.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table acme_challenges add column served_at timestamptz(3)');
  await knex.raw('alter table certificate_orders add column account_id text collate "C"');
}
