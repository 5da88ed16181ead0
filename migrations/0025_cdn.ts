import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('cdn_zones', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.specificType('name', 'text collate "C"').notNullable();
    table.jsonb('origin').notNullable();
    table.specificType('hostname', 'text collate "C"').notNullable();
    table.boolean('enabled').notNullable();
    table.jsonb('cache').notNullable();
    table.boolean('compression').notNullable();
    table.boolean('force_https').notNullable();
    table.text('status').notNullable().defaultTo('provisioning');
    table.text('status_reason');
    loopColumns(table);
    table.check(`status in ('provisioning', 'active', 'updating', 'disabled', 'failed')`, [], 'cdn_zones_status');
  });
  await knex.schema.createTable('cdn_purges', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table
      .specificType('cdn_zone_id', 'text collate "C"')
      .notNullable()
      .references('cdn_zones.id')
      .onDelete('cascade')
      .withKeyName('cdn_purges_cdn_zone');
    table.text('type').notNullable();
    table.specificType('values', 'text[]');
    table.text('status').notNullable().defaultTo('pending');
    table.text('status_reason');
    table.jsonb('created_by').notNullable();
    table.specificType('completed_at', 'timestamptz(3)');
    loopColumns(table);
    table.check(`type in ('all', 'urls', 'prefixes', 'tags')`, [], 'cdn_purges_type');
    table.check(`status in ('pending', 'completed', 'failed')`, [], 'cdn_purges_status');
  });
  for (const sql of [...INDEXES, ...DOMAINS]) await knex.raw(sql);
}

const INDEXES = [
  'create unique index cdn_zones__name_taken__name on cdn_zones (project_id, name) where deleted_at is null',
  'create unique index cdn_zones_hostname on cdn_zones (hostname)',
  'create index cdn_zones_by_id on cdn_zones (project_id, id) where deleted_at is null',
  'create index cdn_zones_by_status on cdn_zones (project_id, status, id) where deleted_at is null',
  'create index cdn_zones_due on cdn_zones (next_at) where next_at is not null',
  'create index cdn_purges_by_id on cdn_purges (cdn_zone_id, id) where deleted_at is null',
  'create index cdn_purges_by_type on cdn_purges (cdn_zone_id, type, id) where deleted_at is null',
  'create index cdn_purges_by_status on cdn_purges (cdn_zone_id, status, id) where deleted_at is null',
  'create index cdn_purges_due on cdn_purges (next_at) where next_at is not null',
];

/** Host names of customers stand in one table, whatever answers at them: they are checked and certified alike. */
const DOMAINS = [
  'alter table domains alter column application_id drop not null',
  `alter table domains add column cdn_zone_id text collate "C" constraint domains_cdn_zone references cdn_zones (id)
    on delete cascade`,
  'alter table domains add constraint domains_parent check (num_nonnulls(application_id, cdn_zone_id) = 1)',
  'alter table domains add column target_host text',
  // Whole: the end of a zone looks for rows in tear-down too.
  'create index domains_of_cdn_zone on domains (cdn_zone_id, id)',
  'create index domains_of_cdn_zone_by_hostname on domains (cdn_zone_id, hostname, id) where deleted_at is null',
  'create index domains_of_cdn_zone_by_status on domains (cdn_zone_id, status, id) where deleted_at is null',
  'create view cdn_domains as select * from domains where cdn_zone_id is not null with local check option',
  `create function cdn_domain_changed() returns trigger language plpgsql as $$
    begin
      update cdn_zones set next_at = now() where id = coalesce(new.cdn_zone_id, old.cdn_zone_id);
      perform pg_notify('due', 'cdn_zones');
      return null;
    end $$`,
  `create trigger domains_of_cdn_zone_change after update of status, deleted_at on domains for each row
    when (new.cdn_zone_id is not null) execute function cdn_domain_changed()`,
  `create trigger domains_of_cdn_zone_delete after delete on domains for each row
    when (old.cdn_zone_id is not null) execute function cdn_domain_changed()`,
];
