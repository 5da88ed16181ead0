import type { Knex } from 'knex';

/**
 * Operators of the installation. Of an installation that exists, the user of the first start is one: of the oldest
 * account, with the API key that was made in the same transaction. No later user can have that mark
 * (docs/decisions/0227-operators-of-an-installation.md).
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table users add column is_operator boolean not null default false');
  await knex.raw(`update users u set is_operator = true
    from (select id, created_at from accounts order by created_at, id limit 1) first
    where u.account_id = first.id and u.created_at = first.created_at
      and exists (select 1 from api_keys k where k.user_id = u.id and k.created_at = u.created_at)`);
}
