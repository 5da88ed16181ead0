import type { Knex } from 'knex';

/**
 * Small messages are kept beside their rows, so that one commit makes them durable; `file` is null for these. They are
 * gone within seconds, and hardly compress: neither compression nor a second table is worth its time.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table email_bodies (
      message_id text collate "C" primary key constraint email_bodies_message references email_messages (id)
        on delete cascade,
      content bytea not null
    ) with (toast_tuple_target = 8160)`);
  await knex.raw('alter table email_bodies alter column content set storage external');
  await knex.raw('alter table email_messages alter column file drop not null');
}
