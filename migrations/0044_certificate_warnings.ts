import type { Knex } from 'knex';

/** Of which certificate of its target an observer has told last, and when. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table observers add column warned_certificate timestamptz(3),
    add column certificate_warned_at timestamptz(3)`);
  await knex.raw(`update observers set uptime = uptime || '{"certificate_expiry_days": 7}' where uptime is not null`);
}
