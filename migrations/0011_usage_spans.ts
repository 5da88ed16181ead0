import type { Knex } from 'knex';

/** What is charged by the hour: one row for each time that a resource had a certain quantity. Outlives the resource. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('usage_spans', (table) => {
    table.bigIncrements('id');
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.text('kind').notNullable();
    table.specificType('resource_id', 'text collate "C"').notNullable();
    table.text('price_id').notNullable();
    table.bigInteger('quantity').notNullable();
    table.specificType('started_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.specificType('ended_at', 'timestamptz(3)');
    table.index(['project_id', 'started_at'], 'usage_spans_by_project');
    table.check('quantity > 0', [], 'usage_spans_quantity');
  });
  await knex.raw('create unique index usage_spans_open on usage_spans (resource_id) where ended_at is null');
}
