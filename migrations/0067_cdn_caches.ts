import type { Knex } from 'knex';

/**
 * Caches of further ingresses: each has its own, follows zones and purges by notifications, and a purge is completed
 * when those whose time has not run out have done it.
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  `create table cdn_caches (
    id text collate "C" primary key,
    expires_at timestamptz(3) not null
  )`,
  // By the clock of the database, unlike created_at.
  'alter table cdn_purges add column recorded_at timestamptz(3) not null default now()',
  'create index cdn_purges_recorded on cdn_purges (recorded_at)',
  `create function cdn_purge_made() returns trigger language plpgsql as $$
    begin
      perform pg_notify('cdn_purges', new.id);
      return null;
    end $$`,
  `create trigger cdn_purges_made after insert on cdn_purges for each row execute function cdn_purge_made()`,
  `create function cdn_zone_changed() returns trigger language plpgsql as $$
    begin
      perform pg_notify('cdn_zones', coalesce(new.id, old.id));
      return null;
    end $$`,
  `create trigger cdn_zones_change after insert or delete
    or update of hostname, origin, enabled, cache, compression, force_https, deleted_at on cdn_zones
    for each row execute function cdn_zone_changed()`,
  `create or replace function cdn_domain_changed() returns trigger language plpgsql as $$
    begin
      update cdn_zones set next_at = now() where id = coalesce(new.cdn_zone_id, old.cdn_zone_id);
      perform pg_notify('due', 'cdn_zones');
      perform pg_notify('cdn_zones', coalesce(new.cdn_zone_id, old.cdn_zone_id));
      return null;
    end $$`,
];
