import type { Knex } from 'knex';

// What happened (kept 90 days), what was answered to an Idempotency-Key (24 h), and rate windows shared by processes.
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('activity', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table.specificType('project_id', 'text collate "C"');
    table.text('account_id').notNullable();
    table.text('action').notNullable();
    table.text('outcome').notNullable().defaultTo('succeeded');
    table.jsonb('actor').notNullable();
    table.text('actor_id');
    table.text('key_id');
    table.text('resource_type').notNullable();
    table.text('resource_id').notNullable();
    table.text('resource_name');
    table.specificType('changed_fields', 'text[]').notNullable().defaultTo('{}');
    table.text('request_id');
    table.specificType('created_at', 'timestamptz(3)').notNullable();
    table.index(['project_id', 'id'], 'activity_by_project');
    table.index(['project_id', 'action', 'id'], 'activity_by_action');
    table.index(['project_id', 'actor_id', 'id'], 'activity_by_actor');
    table.index(['project_id', 'resource_id', 'id'], 'activity_by_resource');
    table.index(['project_id', 'resource_type', 'id'], 'activity_by_resource_type');
    table.index(['created_at'], 'activity_by_age');
  });
  await knex.schema.createTable('idempotency_records', (table) => {
    table.text('scope').primary();
    table.text('fingerprint').notNullable();
    table.integer('status');
    table.text('answer');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.raw('now()'));
    table.index(['created_at'], 'idempotency_records_by_age');
  });
  await knex.raw(
    'create unlogged table rate_windows (bucket text primary key, window_start bigint not null, used bigint not null)',
  );
}
