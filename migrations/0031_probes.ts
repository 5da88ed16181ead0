import type { Knex } from 'knex';

/**
 * Probes in other regions: what each can do, who has taken a check, and which regions nobody hears of. A result counts
 * once: `counted_fence` is the claim whose result was counted last.
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  `alter table probes add column name text not null, add column prefix text not null,
    add column revoked_at timestamptz(3),
    add column checks text[],
    add column suspended boolean not null default false`,
  `alter table observer_checks add column counted_fence bigint not null default 0,
    add column probe_id text collate "C",
    add column claimed_at timestamptz(3)`,
  `alter table monitored_regions add column lost_at timestamptz(3), add column late_at timestamptz(3)`,
];
