import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('dns_zones', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.specificType('name', 'text collate "C"').notNullable();
    table.integer('default_ttl').notNullable();
    table.jsonb('soa').notNullable();
    table.text('label').notNullable();
    table.specificType('name_servers', 'text[]').notNullable();
    table.integer('serial').notNullable().defaultTo(1);
    table.integer('record_count').notNullable().defaultTo(0);
    table.text('status').notNullable().defaultTo('pending');
    table.text('status_reason');
    table.specificType('observed_name_servers', 'text[]');
    table.specificType('last_checked_at', 'timestamptz(3)');
    table.specificType('elsewhere_since', 'timestamptz(3)');
    table.text('dnssec_status').notNullable().defaultTo('disabled');
    table.specificType('dnssec_enabled_at', 'timestamptz(3)');
    table.specificType('dnssec_checked_at', 'timestamptz(3)');
    // A sealed list of private keys.
    table.text('signing_keys');
    loopColumns(table);
    table.check(`status in ('pending', 'active', 'moved')`, [], 'dns_zones_status');
    table.check(`dnssec_status in ('disabled', 'pending', 'active')`, [], 'dns_zones_dnssec_status');
  });
  await knex.schema.createTable('dns_records', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table
      .specificType('dns_zone_id', 'text collate "C"')
      .notNullable()
      .references('dns_zones.id')
      .onDelete('cascade')
      .withKeyName('dns_records_dns_zone');
    table.specificType('name', 'text collate "C"').notNullable();
    table.specificType('type', 'text collate "C"').notNullable();
    table.text('value').notNullable();
    table.integer('ttl');
    table.integer('priority');
    table.integer('weight');
    table.integer('port');
    table.integer('flags');
    table.text('tag');
    table.text('comment');
    table.boolean('is_protected').notNullable().defaultTo(false);
    // Which resource made the record and keeps it: {type, id}.
    table.jsonb('managed_by');
  });
  for (const sql of INDEXES) await knex.raw(sql);
}

const INDEXES = [
  // A claim blocks its own project, a delegated zone everybody (docs/contract/resources.md §12.1).
  'create unique index dns_zones__domain_taken__name on dns_zones (project_id, name) where deleted_at is null',
  `create unique index dns_zones__domain_taken on dns_zones (name) where deleted_at is null and status = 'active'`,
  'create index dns_zones_by_id on dns_zones (project_id, id) where deleted_at is null',
  'create index dns_zones_by_status on dns_zones (project_id, status, id) where deleted_at is null',
  // For claims of all projects.
  'create index dns_zones_of_name on dns_zones (lower(name)) where deleted_at is null',
  'create index dns_zones_by_name on dns_zones (project_id, name, id) where deleted_at is null',
  'create index dns_zones_due on dns_zones (next_at) where next_at is not null',
  // The value may be longer than an index entry.
  `create unique index dns_records__already_exists on dns_records
     (dns_zone_id, name, type, md5(value), coalesce(priority, -1))`,
  'create index dns_records_by_id on dns_records (dns_zone_id, id)',
  'create index dns_records_by_name on dns_records (dns_zone_id, name, id)',
  'create index dns_records_by_type on dns_records (dns_zone_id, type, id)',
];
