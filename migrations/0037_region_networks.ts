import type { Knex } from 'knex';

/** What applications of a region share of its network, as the process that starts them has found out. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table region_networks (
      region_id text collate "C" primary key,
      isolation text not null constraint region_networks_isolation check (isolation in ('project', 'none')),
      egress boolean not null,
      reported_at timestamptz(3) not null default now()
    )`);
}
