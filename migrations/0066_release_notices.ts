import type { Knex } from 'knex';

/** One row: which newer release the index at RELEASES_URL has, and when one of the processes asks again. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`create table release_notices (
    id smallint primary key default 1 check (id = 1),
    next_at timestamptz(3) not null default now(),
    release jsonb
  )`);
  await knex.raw('insert into release_notices default values');
}
