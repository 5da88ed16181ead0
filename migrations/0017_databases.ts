import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/** Database servers with their users, endpoints, replicas, backups and attachments. */
export async function up(knex: Knex): Promise<void> {
  await createPorts(knex);
  await createDatabases(knex);
  await createUsers(knex);
  await createReplicas(knex);
  await createEndpoints(knex);
  await createBackups(knex);
  await createAttachments(knex);
  for (const sql of [...INDEXES, ...CHILD_INDEXES, ...PORTS]) await knex.raw(sql);
}

/** One port has one owner: a database, a replica or an endpoint. It is free again when the row of its owner is gone. */
async function createPorts(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_ports', (table) => {
    table.integer('port').primary();
    table.specificType('owner_id', 'text collate "C"').notNullable();
    table.unique(['owner_id'], { indexName: 'database_ports_owner' });
  });
}

async function createDatabases(knex: Knex): Promise<void> {
  await knex.schema.createTable('databases', (table) => {
    resourceColumns(table);
    table
      .specificType('project_id', 'text collate "C"')
      .notNullable()
      .references('projects.id')
      .withKeyName('databases_project');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('engine').notNullable();
    // What the server runs, and what `upgrade` has asked for.
    table.text('engine_version').notNullable();
    table.text('wanted_version');
    sizeColumns(table);
    table.integer('storage_gb').notNullable();
    table.text('region').notNullable();
    table.text('database_name');
    table.text('username').notNullable();
    table.jsonb('backup_schedule').notNullable();
    table.jsonb('maintenance_window').notNullable();
    table.boolean('deletion_protection').notNullable().defaultTo(false);
    // What it was made as a copy of, and what a restore in place takes its data from while it lasts.
    table.jsonb('restore_from');
    table.jsonb('restoring_from');
    table.jsonb('point_in_time_window');
    table.boolean('running').notNullable().defaultTo(true);
    table.text('status').notNullable().defaultTo('provisioning');
    table.text('status_reason');
    serverColumns(table);
    // Sealed.
    table.text('admin_password').notNullable();
    // Of the server as it was first made: another one on the port is not ours.
    table.text('system_identifier');
    loopColumns(table);
    table.check('storage_gb > 0', [], 'databases_storage');
  });
}

async function createUsers(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_users', (table) => {
    resourceColumns(table);
    parents(table, 'database_users').onDelete('cascade');
    table.specificType('username', 'text collate "C"').notNullable();
    table.text('access').notNullable();
    table.boolean('is_default').notNullable().defaultTo(false);
    // Sealed.
    table.text('password').notNullable();
    // Of the version that the server has: until it is the row's own, what the row says is not yet in force.
    table.bigInteger('applied_version').notNullable().defaultTo(0);
    table.check(`access in ('admin', 'read_write', 'read_only')`, [], 'database_users_access');
  });
}

async function createReplicas(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_replicas', (table) => {
    resourceColumns(table);
    parents(table, 'database_replicas');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('region').notNullable();
    sizeColumns(table);
    table.specificType('replication_lag_seconds', 'double precision');
    table.text('status').notNullable().defaultTo('provisioning');
    table.text('status_reason');
    serverColumns(table);
    loopColumns(table);
  });
}

async function createEndpoints(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_endpoints', (table) => {
    resourceColumns(table);
    parents(table, 'database_endpoints');
    table
      .specificType('replica_id', 'text collate "C"')
      .references('database_replicas.id')
      .withKeyName('database_endpoints_replica');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('access').notNullable();
    table.text('target').notNullable();
    table.jsonb('allowed_sources').notNullable().defaultTo('[]');
    table.text('pool_mode');
    table.integer('pool_size');
    // That of the server, or one of its own where something stands between.
    table.integer('port').notNullable();
    table.boolean('is_default').notNullable().defaultTo(false);
    table.text('status').notNullable().defaultTo('provisioning');
    table.text('status_reason');
    loopColumns(table);
    table.check(`access in ('private', 'public')`, [], 'database_endpoints_access');
    table.check(
      `target in ('primary', 'replicas') and (replica_id is null or target = 'replicas')`,
      [],
      'database_endpoints_target',
    );
    table.check('(pool_mode is null) = (pool_size is null)', [], 'database_endpoints_pool');
  });
}

async function createBackups(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_backups', (table) => {
    resourceColumns(table);
    parents(table, 'database_backups');
    table.text('type').notNullable();
    table.text('note');
    table.text('engine_version').notNullable();
    table.bigInteger('size_bytes');
    table.specificType('started_at', 'timestamptz(3)');
    table.specificType('finished_at', 'timestamptz(3)');
    table.specificType('expires_at', 'timestamptz(3)');
    // What it takes to restore it (drivers/database.ts BackupMade).
    table.jsonb('manifest');
    table.text('status').notNullable().defaultTo('pending');
    table.text('status_reason');
    loopColumns(table);
    table.check(`type in ('scheduled', 'manual')`, [], 'database_backups_type');
  });
}

async function createAttachments(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_attachments', (table) => {
    resourceColumns(table);
    parents(table, 'database_attachments').onDelete('cascade');
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .withKeyName('database_attachments_application');
    table
      .specificType('endpoint_id', 'text collate "C"')
      .notNullable()
      .references('database_endpoints.id')
      .withKeyName('database_attachments_endpoint');
    table
      .specificType('user_id', 'text collate "C"')
      .notNullable()
      .references('database_users.id')
      .withKeyName('database_attachments_user');
    table.specificType('env_prefix', 'text collate "C"').notNullable();
  });
}

function parents(table: Knex.CreateTableBuilder, name: string): Knex.ReferencingColumnBuilder {
  table
    .specificType('project_id', 'text collate "C"')
    .notNullable()
    .references('projects.id')
    .withKeyName(`${name}_project`);
  return table
    .specificType('database_id', 'text collate "C"')
    .notNullable()
    .references('databases.id')
    .withKeyName(`${name}_database`);
}

/** `nodes` is that of the package: what it costs is counted by it. */
function sizeColumns(table: Knex.CreateTableBuilder): void {
  table.text('database_package').notNullable();
  table.integer('nodes').notNullable();
}

/** A server process of this host. */
function serverColumns(table: Knex.CreateTableBuilder): void {
  // Names its directory and its unit: the row's own id, of a promoted replica that of the replica.
  table.specificType('server_id', 'text collate "C"').notNullable();
  table.integer('port').notNullable();
  // The user of the operating system derives from it, as that of an application does: one row of numbers for both.
  table.specificType('tenant', `integer default nextval('applications_tenant_seq')`).notNullable();
  // PEM, made by the platform; the key is sealed.
  table.text('tls_certificate');
  table.text('tls_key');
}

const INDEXES = [
  'create unique index databases__name_taken__name on databases (project_id, name) where deleted_at is null',
  'create unique index databases_server on databases (server_id)',
  'create unique index databases_tenant on databases (tenant)',
  'create index databases_by_id on databases (project_id, id) where deleted_at is null',
  'create index databases_by_name on databases (project_id, name, id) where deleted_at is null',
  'create index databases_by_update on databases (project_id, updated_at, id) where deleted_at is null',
  'create index databases_by_engine on databases (project_id, engine, id) where deleted_at is null',
  'create index databases_by_status on databases (project_id, status, id) where deleted_at is null',
  'create index databases_by_region on databases (project_id, region, id) where deleted_at is null',
  'create index databases_by_package on databases (project_id, database_package, id) where deleted_at is null',
  'create index databases_of_project on databases (project_id)',
  'create index databases_due on databases (next_at) where next_at is not null',
];

const CHILD_INDEXES = [
  'create unique index database_users__already_exists__username on database_users (database_id, username)',
  'create unique index database_users_default on database_users (database_id) where is_default',
  'create index database_users_by_id on database_users (database_id, id)',
  'create index database_users_by_name on database_users (database_id, username, id)',
  'create index database_users_by_access on database_users (database_id, access, id)',
  'create index database_users_of_project on database_users (project_id)',

  `create unique index database_replicas__name_taken__name on database_replicas (database_id, name)
    where deleted_at is null`,
  'create index database_replicas_by_id on database_replicas (database_id, id) where deleted_at is null',
  'create index database_replicas_by_name on database_replicas (database_id, name, id) where deleted_at is null',
  'create index database_replicas_by_status on database_replicas (database_id, status, id) where deleted_at is null',
  'create index database_replicas_by_region on database_replicas (database_id, region, id) where deleted_at is null',
  'create unique index database_replicas_server on database_replicas (server_id)',
  'create index database_replicas_of_database on database_replicas (database_id)',
  'create index database_replicas_of_project on database_replicas (project_id)',
  'create index database_replicas_due on database_replicas (next_at) where next_at is not null',

  `create unique index database_endpoints__name_taken__name on database_endpoints (database_id, name)
    where deleted_at is null`,
  `create unique index database_endpoints_default on database_endpoints (database_id)
    where is_default and deleted_at is null`,
  'create index database_endpoints_by_id on database_endpoints (database_id, id) where deleted_at is null',
  'create index database_endpoints_by_name on database_endpoints (database_id, name, id) where deleted_at is null',
  'create index database_endpoints_by_access on database_endpoints (database_id, access, id) where deleted_at is null',
  'create index database_endpoints_by_target on database_endpoints (database_id, target, id) where deleted_at is null',
  'create index database_endpoints_by_status on database_endpoints (database_id, status, id) where deleted_at is null',
  'create index database_endpoints_of_database on database_endpoints (database_id)',
  'create index database_endpoints_of_replica on database_endpoints (replica_id) where replica_id is not null',
  'create index database_endpoints_of_project on database_endpoints (project_id)',
  'create index database_endpoints_due on database_endpoints (next_at) where next_at is not null',

  // One manual backup at a time.
  `create unique index database_backups__resource_busy on database_backups (database_id)
    where type = 'manual' and status in ('pending', 'running') and deleted_at is null`,
  'create index database_backups_by_id on database_backups (database_id, id) where deleted_at is null',
  'create index database_backups_by_type on database_backups (database_id, type, id) where deleted_at is null',
  'create index database_backups_by_status on database_backups (database_id, status, id) where deleted_at is null',
  `create index database_backups_by_expiry on database_backups (expires_at)
    where expires_at is not null and deleted_at is null`,
  'create index database_backups_of_database on database_backups (database_id)',
  'create index database_backups_of_project on database_backups (project_id)',
  'create index database_backups_due on database_backups (next_at) where next_at is not null',

  'create unique index database_attachments__already_exists on database_attachments (database_id, application_id)',
  'create index database_attachments_by_id on database_attachments (database_id, id)',
  'create index database_attachments_by_prefix on database_attachments (database_id, env_prefix, id)',
  'create index database_attachments_by_application on database_attachments (application_id, id)',
  'create index database_attachments_by_application_prefix on database_attachments (application_id, env_prefix, id)',
  'create index database_attachments_of_endpoint on database_attachments (endpoint_id)',
  'create index database_attachments_of_user on database_attachments (user_id)',
  'create index database_attachments_of_project on database_attachments (project_id)',
];

// Whoever deletes the row: the port has been of use until then.
const PORTS = [
  `create function database_port_free() returns trigger language plpgsql as $$
    begin
      delete from database_ports where owner_id = old.id;
      return null;
    end $$`,
  ...['databases', 'database_replicas', 'database_endpoints'].map(
    (table) =>
      `create trigger ${table}_port after delete on ${table} for each row execute function database_port_free()`,
  ),
];
