import type { Knex } from 'knex';

/**
 * Certificates of default host names beside those of custom domains and of the platform, what stands in their way, when
 * to renew them (RFC 9773), and the orders of the last days, since authorities count them.
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  // Of a default host name: whose it is. Without any of these and without a domain: of the platform itself.
  `alter table certificates
    add column application_id text collate "C"
      constraint certificates_application references applications on delete cascade,
    add column preview_id text collate "C" constraint certificates_preview references previews on delete cascade,
    add column cdn_zone_id text collate "C" constraint certificates_cdn_zone references cdn_zones on delete cascade,
    add column reason text,
    add column reason_since timestamptz(3),
    add column is_waiting boolean not null default false,
    add column unfinished text,
    add column renewal jsonb,
    add column warned_at timestamptz(3)`,
  'create index certificates_of_application on certificates (application_id) where application_id is not null',
  'create index certificates_of_preview on certificates (preview_id) where preview_id is not null',
  'create index certificates_of_cdn_zone on certificates (cdn_zone_id) where cdn_zone_id is not null',
  `create table certificate_orders (
    id bigint generated always as identity primary key,
    authority text not null,
    hostname text collate "C" not null,
    registered_domain text collate "C" not null,
    is_renewal boolean not null,
    outcome text not null default 'open'
      constraint certificate_orders_outcome check (outcome in ('open', 'issued', 'failed')),
    created_at timestamptz(3) not null default now())`,
  'create index certificate_orders_recent on certificate_orders (authority, created_at)',
  'create index certificate_orders_of_name on certificate_orders (hostname, created_at)',
  // A pause that an authority has asked all orders of an account for.
  'alter table acme_accounts add column paused_until timestamptz(3), add column pause_reason text',
];
