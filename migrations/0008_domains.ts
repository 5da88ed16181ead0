import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('domains', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .withKeyName('domains_application');
    table.specificType('hostname', 'text collate "C"').notNullable();
    table.text('type').notNullable();
    table.text('status').notNullable().defaultTo('pending');
    table.text('status_reason');
    // What the last check found in the DNS; the instructions are made of it when they are read.
    table.jsonb('findings');
    table.jsonb('certificate').notNullable();
    table.text('verification_token').notNullable();
    table.specificType('last_checked_at', 'timestamptz(3)');
    table.specificType('verified_at', 'timestamptz(3)');
    table.specificType('missing_since', 'timestamptz(3)');
    loopColumns(table);
    // Also while it is torn down: host names are unique on the platform until the end (docs/decisions/rules.md §4).
    table.unique(['hostname'], { indexName: 'domains__domain_taken__hostname' });
    table.check(`type in ('apex', 'subdomain', 'wildcard')`, [], 'domains_type');
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

const INDEXES = [
  // Whole: the end of an application looks for rows in tear-down too.
  'create index domains_by_id on domains (application_id, id)',
  'create index domains_by_hostname on domains (application_id, hostname, id) where deleted_at is null',
  'create index domains_by_status on domains (application_id, status, id) where deleted_at is null',
  'create index domains_due on domains (next_at) where next_at is not null',
];
