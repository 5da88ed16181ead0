import type { Knex } from 'knex';
import { BATCHES } from './frozen/bucket_batches';

/** Objects that wait for the lock of their bucket are written together. */
export async function up(knex: Knex): Promise<void> {
  for (const text of BATCHES) await knex.raw(text);
}
