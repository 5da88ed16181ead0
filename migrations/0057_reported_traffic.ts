import type { Knex } from 'knex';

/** What further ingresses have counted, until the process that runs the jobs has taken it into the metrics. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('reported_traffic', (table) => {
    table.bigIncrements('id');
    table.timestamp('at', { precision: 3 }).notNullable().defaultTo(knex.fn.now());
    table.jsonb('traffic').notNullable();
  });
  await knex.raw('create index reported_traffic_at on reported_traffic (at)');
}
