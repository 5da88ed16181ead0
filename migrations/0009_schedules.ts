import type { Knex } from 'knex';
import { loopColumns } from './frozen/columns';

/** Periodic work: one row for each task of jobs/periodic_task.ts, due like every other row of the loop. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('schedules', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    loopColumns(table);
  });
  await knex.raw('create index schedules_due on schedules (next_at) where next_at is not null');
}
