import type { Knex } from 'knex';

/** Codes with which the owner of a new installation sets a password. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table account_links drop constraint account_links_purpose');
  await knex.raw(`alter table account_links add constraint account_links_purpose
    check (purpose in ('password_reset', 'email_confirmation', 'first_start'))`);
}
