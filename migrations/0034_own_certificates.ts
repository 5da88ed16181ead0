import type { Knex } from 'knex';

/** A certificate without a domain is of a host name of the platform itself, such as SMTP_HOST. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table certificates alter column domain_id drop not null');
}
