import type { Knex } from 'knex';

/** Which cache has done which purge. A purge is completed when all of them have. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table cdn_purge_nodes (
      cdn_purge_id text collate "C" not null constraint cdn_purge_nodes_purge references cdn_purges (id)
        on delete cascade,
      node text collate "C" not null,
      completed_at timestamptz(3) not null default now(),
      primary key (cdn_purge_id, node)
    )`);
}
