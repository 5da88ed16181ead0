import type { Knex } from 'knex';

/**
 * What a rejection was about takes the place of `soft`: earlier versions took a refusal of the sender for a missing
 * mailbox, so nothing is concluded from theirs.
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  `alter table email_deliveries add column rejection text
     constraint email_deliveries_rejection check (rejection in ('mailbox', 'unclear', 'other'))`,
  'drop index email_deliveries_soft',
  'alter table email_deliveries drop column soft',
  `create index email_deliveries_unclear on email_deliveries (email_relay_zone_id, lower(recipient))
     where rejection = 'unclear'`,
  // Whether a destination takes mail at all.
  `create index email_deliveries_refused on email_deliveries (destination, ended_at)
     where rejection is not null`,
  `create index email_deliveries_taken on email_deliveries (destination, ended_at) where status = 'delivered'`,
];
