import type { Knex } from 'knex';

/**
 * Of a password that is rotated while applications use it, the old one stays valid until they have the new one. The
 * autoscaler is no scheduled task any more; its column of processes is still written by programs of before.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('database_users', (table) => {
    // The name by which the server knows the present password, where it knows one password by name only; null = the
    // name of the user.
    table.text('login');
    // Sealed; null where there is no rotation. The name is that of its attachments then.
    table.text('previous_password');
    table.text('previous_login');
    table.specificType('previous_until', 'timestamptz(3)');
    // When the server had the present password: what was released before has the previous one.
    table.specificType('applied_at', 'timestamptz(3)');
  });
  await knex.raw(
    'create index database_users_rotating on database_users (database_id) where previous_password is not null',
  );
  await knex.raw(`delete from schedules where id = 'autoscale'`);
}
