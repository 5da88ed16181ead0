import type { Knex } from 'knex';

/** Wrong two-factor codes of browsers in which the person was logged in before, counted apart from those of others. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table users add column known_code_failures integer not null default 0,
    add column known_code_retry_at timestamptz(3)`);
}
