// Columns that tables share, as migrations make them. Never changed: a table that is made on a new installation must be
// the one that an old installation has.
import type { Knex } from 'knex';

/** id, version and the two timestamps of every kind. Text sorts by bytes, on every machine alike. */
export function resourceColumns(table: Knex.CreateTableBuilder): void {
  table.specificType('id', 'text collate "C"').primary();
  table.bigInteger('version').notNullable().defaultTo(1);
  table.specificType('created_at', 'timestamptz(3)').notNullable();
  table.specificType('updated_at', 'timestamptz(3)').notNullable();
}

/** Columns of the reconcile loop (docs/decisions/rules.md §1): what the driver made, and when the next step is due. */
export function loopColumns(table: Knex.CreateTableBuilder): void {
  table.text('driver');
  table.jsonb('ref');
  table.jsonb('observed');
  table.bigInteger('generation').notNullable().defaultTo(1);
  table.bigInteger('observed_generation').notNullable().defaultTo(0);
  table.specificType('next_at', 'timestamptz(3) default now()');
  table.text('lease_owner');
  table.specificType('lease_until', 'timestamptz(3)');
  table.bigInteger('fence').notNullable().defaultTo(0);
  table.integer('attempts').notNullable().defaultTo(0);
  table.text('last_error');
  table.specificType('deadline_at', 'timestamptz(3)');
  table.specificType('deleted_at', 'timestamptz(3)');
}
