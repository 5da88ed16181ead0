import type { Knex } from 'knex';

/** Protection from deletion for all kinds with data, as databases have it, and for a project with all in it. */
export async function up(knex: Knex): Promise<void> {
  for (const table of TABLES)
    await knex.raw(`alter table ${table} add column deletion_protection boolean not null default false`);
}

const TABLES = [
  'applications',
  'volumes',
  'buckets',
  'dns_zones',
  'cdn_zones',
  'email_domains',
  'email_relay_zones',
  'registries',
  'projects',
];
