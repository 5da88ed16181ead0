import type { Knex } from 'knex';

/** A key that destroys too much is paused. `destroyed_at`: times of the last minute, as long as none is paused. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table api_keys add column paused_at timestamptz(3),
    add column resumed_at timestamptz(3),
    add column destroyed_at timestamptz[] not null default '{}'`);
}
