import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/**
 * Sending domains, relay zones with their suppressions, and the queue: one row for each accepted message, whose text is
 * a file of the host, and one for each of its recipients.
 */
export async function up(knex: Knex): Promise<void> {
  await createDomains(knex);
  await createZones(knex);
  for (const sql of [...INDEXES, ...QUEUE]) await knex.raw(sql);
}

async function createDomains(knex: Knex): Promise<void> {
  await knex.schema.createTable('email_domains', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('return_path_subdomain').notNullable();
    table.text('dns').notNullable().defaultTo('automatic');
    table.boolean('open_tracking').notNullable().defaultTo(false);
    table.boolean('click_tracking').notNullable().defaultTo(false);
    table.text('dkim_selector').notNullable();
    // What the DNS shows of the keys; the keys themselves are a sealed list.
    table.jsonb('dkim_records').notNullable();
    table.text('dkim_keys').notNullable();
    table.text('status').notNullable().defaultTo('pending');
    table.text('status_reason');
    table.jsonb('findings');
    table.specificType('last_checked_at', 'timestamptz(3)');
    table.specificType('verified_at', 'timestamptz(3)');
    // Since when the records are waited for, and since when a verified domain lacks them.
    table.specificType('pending_since', 'timestamptz(3)').notNullable();
    table.specificType('missing_since', 'timestamptz(3)');
    loopColumns(table);
    table.check(`status in ('pending', 'verified', 'failed')`, [], 'email_domains_status');
  });
}

async function createZones(knex: Knex): Promise<void> {
  await knex.schema.createTable('email_relay_zones', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.specificType('name', 'text collate "C"').notNullable();
    table.specificType('email_domain_ids', 'text[]').notNullable();
    table.specificType('allowed_sources', 'text[]').notNullable().defaultTo('{}');
    table.integer('daily_limit');
    table.boolean('enabled').notNullable().defaultTo(true);
    // SHA-256 of 256 random bits.
    table.text('password_hash').notNullable();
    table.text('status').notNullable().defaultTo('active');
    table.text('status_reason');
    table.specificType('suspended_at', 'timestamptz(3)');
    loopColumns(table);
    table.check(`status in ('active', 'disabled', 'suspended')`, [], 'email_relay_zones_status');
  });
  await knex.schema.createTable('email_suppressions', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table
      .specificType('email_relay_zone_id', 'text collate "C"')
      .notNullable()
      .references('email_relay_zones.id')
      .onDelete('cascade')
      .withKeyName('email_suppressions_email_relay_zone');
    table.specificType('email', 'text collate "C"').notNullable();
    table.text('reason').notNullable();
    table.text('detail');
    table.check(`reason in ('bounce', 'complaint', 'manual')`, [], 'email_suppressions_reason');
  });
}

const INDEXES = [
  // A claim blocks its own project, a verified domain everybody (docs/contract/resources.md §14.1).
  'create unique index email_domains__domain_taken__name on email_domains (project_id, name) where deleted_at is null',
  `create unique index email_domains__domain_taken on email_domains (name)
     where deleted_at is null and status = 'verified'`,
  'create index email_domains_by_id on email_domains (project_id, id) where deleted_at is null',
  'create index email_domains_by_name on email_domains (project_id, name, id) where deleted_at is null',
  'create index email_domains_by_status on email_domains (project_id, status, id) where deleted_at is null',
  'create index email_domains_due on email_domains (next_at) where next_at is not null',
  `create unique index email_relay_zones__name_taken__name on email_relay_zones (project_id, name)
     where deleted_at is null`,
  'create index email_relay_zones_by_id on email_relay_zones (project_id, id) where deleted_at is null',
  'create index email_relay_zones_by_name on email_relay_zones (project_id, name, id) where deleted_at is null',
  'create index email_relay_zones_by_status on email_relay_zones (project_id, status, id) where deleted_at is null',
  'create index email_relay_zones_by_domain on email_relay_zones using gin (email_domain_ids)',
  'create index email_relay_zones_due on email_relay_zones (next_at) where next_at is not null',
  `create unique index email_suppressions__already_exists__email on email_suppressions (email_relay_zone_id, email)`,
  'create index email_suppressions_by_id on email_suppressions (email_relay_zone_id, id)',
  'create index email_suppressions_by_reason on email_suppressions (email_relay_zone_id, reason, id)',
];

const QUEUE = [
  // Recipients that a zone has handed in on a day (UTC).
  `create table email_days (
    email_relay_zone_id text collate "C" not null,
    day date not null,
    recipients integer not null default 0,
    primary key (email_relay_zone_id, day)
  ) with (fillfactor = 60)`,
  // zone and project are null for mail of the platform itself.
  `create table email_messages (
    id text collate "C" primary key,
    project_id text collate "C",
    email_relay_zone_id text collate "C",
    email_domain_id text collate "C",
    sender text not null,
    header_from text not null,
    message_id text not null,
    subject text not null default '',
    body_hash text not null,
    size_bytes bigint not null,
    -- File of the host, and where its body begins.
    file text not null,
    body_offset integer not null,
    accepted_at timestamptz(3) not null default now(),
    -- Null while a recipient is waited for.
    finished_at timestamptz(3)
  )`,
  'create index email_messages_finished on email_messages (finished_at) where finished_at is not null',
  `create table email_deliveries (
    message_id text collate "C" not null references email_messages (id) on delete cascade,
    number integer not null,
    email_relay_zone_id text collate "C",
    recipient text not null,
    -- Of the recipient: what is sent to one destination shares its connections and its back-off.
    destination text collate "C" not null,
    status text not null default 'queued' check (
      status in ('queued', 'delivered', 'bounced', 'suppressed', 'kept')
    ),
    attempts integer not null default 0,
    next_at timestamptz(3) default now(),
    fence bigint not null default 0,
    -- An attempt is under way; what a host that died has left so is taken up at the next start.
    claimed boolean not null default false,
    expires_at timestamptz(3) not null,
    last_response text,
    ended_at timestamptz(3),
    opened_at timestamptz(3),
    clicked_at timestamptz(3),
    complained_at timestamptz(3),
    soft boolean not null default false,
    primary key (message_id, number)
  ) with (fillfactor = 70)`,
  'create index email_deliveries_due on email_deliveries (next_at) where next_at is not null',
  // What the platform itself sends, until its message is in the queue. The text is sealed.
  `create table email_outbox (
    id text collate "C" primary key,
    recipients text[] not null,
    sealed text not null,
    created_at timestamptz(3) not null default now()
  )`,
  `create index email_deliveries_soft on email_deliveries (email_relay_zone_id, recipient, ended_at) where soft`,
  `create index email_deliveries_ended on email_deliveries (email_relay_zone_id, ended_at)
     where ended_at is not null`,
];
