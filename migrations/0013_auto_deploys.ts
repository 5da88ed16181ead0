import type { Knex } from 'knex';
import { loopColumns } from './frozen/columns';

/** Which applications are looked after for pushes. The row of an application is made when it is first configured. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('auto_deploys', (table) => {
    // That of the application.
    table
      .specificType('id', 'text collate "C"')
      .primary()
      .references('applications.id')
      .onDelete('cascade')
      .withKeyName('auto_deploys_application');
    table.boolean('enabled').notNullable().defaultTo(false);
    table.text('branch');
    table.boolean('wait_for_checks').notNullable().defaultTo(false);
    table.jsonb('paths').notNullable().defaultTo('[]');
    table.text('status_reason');
    table.specificType('last_checked_at', 'timestamptz(3)');
    // The head that was seen last, and of what: a head of another branch or repository is no push.
    table.text('last_seen_sha');
    table.text('watched');
    // Looks in a row that failed.
    table.integer('failures').notNullable().defaultTo(0);
    loopColumns(table);
  });
  await knex.raw('create index auto_deploys_due on auto_deploys (next_at) where next_at is not null');
}
