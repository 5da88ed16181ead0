import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';
import { LISTS, UPLOADS } from './frozen/bucket_uploads';
import { CHARGES, REMOVALS, WRITES } from './frozen/bucket_writes';

/**
 * Buckets and access keys; objects, multipart uploads and what they use. Objects are files below the data directory;
 * every change of them is one call of a function below, under the lock of the row in bucket_usage, so that metadata,
 * usage and the list of files to remove are one transaction (docs/decisions/0040).
 */
export async function up(knex: Knex): Promise<void> {
  await createBuckets(knex);
  await createKeys(knex);
  for (const sql of [...OBJECTS, ...USAGE, ...CHARGES, ...WRITES, ...REMOVALS, ...UPLOADS, ...LISTS])
    await knex.raw(sql.replaceAll('?', '\\?'));
}

async function createBuckets(knex: Knex): Promise<void> {
  await knex.schema.createTable('buckets', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.specificType('name', 'text collate "C"').notNullable();
    table.specificType('region', 'text collate "C"').notNullable();
    table.text('access').notNullable();
    table.boolean('versioning').notNullable();
    // Since when it has had versions: a bucket that has had some keeps delete markers.
    table.specificType('versioned_at', 'timestamptz(3)');
    table.jsonb('website');
    table.integer('quota_gb');
    table.jsonb('cors').notNullable().defaultTo('[]');
    table.jsonb('lifecycle').notNullable().defaultTo('[]');
    table.jsonb('policy').notNullable().defaultTo('[]');
    // Copied from bucket_usage every few seconds.
    table.bigInteger('object_count').notNullable().defaultTo(0);
    table.bigInteger('size_bytes').notNullable().defaultTo(0);
    table.specificType('lifecycle_at', 'timestamptz(3)');
    loopColumns(table);
  });
  for (const sql of BUCKETS) await knex.raw(sql);
}

async function createKeys(knex: Knex): Promise<void> {
  await knex.schema.createTable('bucket_access_keys', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.specificType('name', 'text collate "C"').notNullable();
    table.specificType('access_key_id', 'text collate "C"').notNullable();
    table.text('sealed_secret').notNullable();
    table.jsonb('grants').notNullable();
    // Buckets that the grants name.
    table.specificType('bucket_ids', 'text[]').notNullable();
    table.boolean('enabled').notNullable();
    table.specificType('expires_at', 'timestamptz(3)');
    table.specificType('last_used_at', 'timestamptz(3)');
    table.text('status').notNullable();
    loopColumns(table);
  });
  for (const sql of KEYS) await knex.raw(sql);
}

const BUCKETS = [
  // Also while it is torn down: the name is that of the bucket at the engine.
  'create unique index buckets__name_taken__name on buckets (name)',
  'create index buckets_by_id on buckets (project_id, id) where deleted_at is null',
  'create index buckets_by_name on buckets (project_id, name, id) where deleted_at is null',
  'create index buckets_by_region on buckets (project_id, region, id) where deleted_at is null',
  'create index buckets_by_access on buckets (project_id, access, id) where deleted_at is null',
  'create index buckets_by_size on buckets (project_id, size_bytes, id) where deleted_at is null',
  'create index buckets_due on buckets (next_at) where next_at is not null',
];

const KEYS = [
  'create unique index bucket_access_keys_access_key_id on bucket_access_keys (access_key_id)',
  'create index bucket_access_keys_by_id on bucket_access_keys (project_id, id) where deleted_at is null',
  'create index bucket_access_keys_by_name on bucket_access_keys (project_id, name, id) where deleted_at is null',
  `create index bucket_access_keys_by_use on bucket_access_keys (project_id, last_used_at, id)
     where deleted_at is null`,
  `create index bucket_access_keys_by_use_last on bucket_access_keys
     (project_id, last_used_at desc nulls last, id desc) where deleted_at is null`,
  'create index bucket_access_keys_by_status on bucket_access_keys (project_id, status, id) where deleted_at is null',
  'create index bucket_access_keys_by_bucket on bucket_access_keys using gin (bucket_ids)',
  'create index bucket_access_keys_due on bucket_access_keys (next_at) where next_at is not null',
];

const OBJECTS = [
  // One row for each version. Ids fall, so the newest version of a key comes first.
  `create table bucket_objects (
    id bigint generated always as identity (start with -1 increment by -1) primary key,
    bucket_id text collate "C" not null,
    key text collate "C" not null,
    version_id text collate "C" not null,
    is_latest boolean not null,
    is_delete_marker boolean not null,
    size bigint not null,
    etag text not null,
    file_id text collate "C",
    part_count integer,
    upload_id text collate "C",
    modified_at timestamptz(3) not null,
    noncurrent_at timestamptz(3),
    metadata jsonb not null,
    tags jsonb,
    is_public boolean not null default false
  )`,
  'create unique index bucket_objects_versions on bucket_objects (bucket_id, key, id)',
  // What a list shows: markers of deleted keys do not slow it down.
  `create unique index bucket_objects_current on bucket_objects (bucket_id, key)
     where is_latest and not is_delete_marker`,
  'create unique index bucket_objects_file on bucket_objects (file_id) where file_id is not null',
  `create table bucket_object_parts (
    object_id bigint not null references bucket_objects (id) on delete cascade,
    number integer not null,
    file_id text collate "C" not null unique,
    size bigint not null,
    checksums jsonb not null,
    primary key (object_id, number)
  )`,
  `create table bucket_uploads (
    id text collate "C" primary key,
    bucket_id text collate "C" not null,
    key text collate "C" not null,
    object jsonb not null,
    created_at timestamptz(3) not null default now()
  )`,
  'create unique index bucket_uploads_of_key on bucket_uploads (bucket_id, key, id)',
  `create table bucket_upload_parts (
    upload_id text collate "C" not null references bucket_uploads (id) on delete cascade,
    number integer not null,
    file_id text collate "C" not null unique,
    size bigint not null,
    etag text not null,
    checksums jsonb not null,
    modified_at timestamptz(3) not null default now(),
    primary key (upload_id, number)
  )`,
  // Files that no object has any more; the host removes them and then the row.
  `create table bucket_garbage (
    file_id text collate "C" primary key,
    bucket_id text collate "C" not null,
    created_at timestamptz(3) not null default now()
  )`,
];

const USAGE = [
  `create table bucket_usage (
    bucket_id text collate "C" primary key references buckets (id) on delete cascade,
    object_count bigint not null default 0,
    size_bytes bigint not null default 0,
    noncurrent_size_bytes bigint not null default 0,
    upload_bytes bigint not null default 0
  ) with (fillfactor = 50)`,
  `create table bucket_totals (
    project_id text collate "C" primary key references projects (id) on delete cascade,
    size_bytes bigint not null default 0
  ) with (fillfactor = 50)`,
  `create table bucket_days (
    bucket_id text collate "C" not null references buckets (id) on delete cascade,
    day date not null,
    size_bytes bigint not null default 0,
    egress_bytes bigint not null default 0,
    requests bigint not null default 0,
    primary key (bucket_id, day)
  ) with (fillfactor = 70)`,
  `create function begin_bucket_usage() returns trigger language plpgsql as $$
    begin
      insert into bucket_usage (bucket_id) values (new.id);
      insert into bucket_totals (project_id) values (new.project_id) on conflict do nothing;
      return null;
    end $$`,
  'create trigger buckets_begin_usage after insert on buckets for each row execute function begin_bucket_usage()',
];
