import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('registries', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('region').notNullable();
    table.text('status').notNullable().defaultTo('provisioning');
    table.text('status_reason');
    table.integer('image_count').notNullable().defaultTo(0);
    table.bigInteger('size_bytes').notNullable().defaultTo(0);
    loopColumns(table);
    table.check(`status in ('provisioning', 'active', 'failed')`, [], 'registries_status');
  });
  await knex.schema.createTable('robot_accounts', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.specificType('name', 'text collate "C"').notNullable();
    table.specificType('permissions', 'text[]').notNullable();
    // null: all registries of the project.
    table.specificType('registry_ids', 'text[]');
    table.specificType('expires_at', 'timestamptz(3)');
    table.specificType('username', 'text collate "C"').notNullable();
    table.text('secret_hash').notNullable();
    table.specificType('last_used_at', 'timestamptz(3)');
  });
  for (const sql of [...CONTENT, ...INDEXES]) await knex.raw(sql);
}

const REGISTRY = 'registry_id text collate "C" not null references registries (id) on delete cascade';

const CONTENT = [
  // Layers and configurations. The file of a digest is shared by all registries that have a row of it.
  `create table registry_blobs (
    ${REGISTRY},
    digest text collate "C" not null,
    size_bytes bigint not null,
    touched_at timestamptz(3) not null default now(),
    primary key (registry_id, digest)
  )`,
  `create table registry_manifests (
    ${REGISTRY},
    repository text collate "C" not null,
    digest text collate "C" not null,
    media_type text not null,
    artifact_type text,
    subject text collate "C",
    annotations jsonb,
    content bytea not null,
    size_bytes bigint not null,
    untagged_at timestamptz(3) default now(),
    primary key (registry_id, repository, digest)
  )`,
  `create table registry_references (
    ${REGISTRY},
    repository text collate "C" not null,
    digest text collate "C" not null,
    target text collate "C" not null,
    primary key (registry_id, repository, digest, target),
    foreign key (registry_id, repository, digest) references registry_manifests on delete cascade
  )`,
  `create table registry_tags (
    id text collate "C" primary key,
    project_id text collate "C" not null,
    ${REGISTRY},
    repository text collate "C" not null,
    tag text collate "C" not null,
    digest text collate "C" not null,
    media_type text not null,
    size_bytes bigint not null,
    pushed_at timestamptz(3) not null,
    foreign key (registry_id, repository, digest) references registry_manifests on delete cascade
  )`,
  `create table registry_uploads (
    id text collate "C" primary key,
    ${REGISTRY},
    repository text collate "C" not null,
    created_at timestamptz(3) not null default now()
  )`,
];

const INDEXES = [
  // Taken until tear-down ends: the name is the path at the registry host.
  'create unique index registries__name_taken__name on registries (name)',
  'create index registries_by_id on registries (project_id, id) where deleted_at is null',
  'create index registries_by_name on registries (project_id, name, id) where deleted_at is null',
  'create index registries_by_size on registries (project_id, size_bytes, id) where deleted_at is null',
  'create index registries_by_status on registries (project_id, status, id) where deleted_at is null',
  'create index registries_due on registries (next_at) where next_at is not null',
  'create unique index robot_accounts__name_taken__name on robot_accounts (project_id, name)',
  'create unique index robot_accounts_username on robot_accounts (username)',
  'create index robot_accounts_by_id on robot_accounts (project_id, id)',
  'create index robot_accounts_by_last_use on robot_accounts (project_id, last_used_at, id)',
  'create index robot_accounts_by_last_use_last on robot_accounts (project_id, last_used_at desc nulls last, id desc)',
  'create index robot_accounts_by_end on robot_accounts (project_id, expires_at, id)',
  'create index registry_blobs_of_digest on registry_blobs (digest)',
  'create index registry_blobs_by_age on registry_blobs (registry_id, touched_at)',
  `create index registry_manifests_untagged on registry_manifests (registry_id, untagged_at)
    where untagged_at is not null`,
  `create index registry_manifests_of_subject on registry_manifests (registry_id, repository, subject)
    where subject is not null`,
  'create index registry_references_of_target on registry_references (registry_id, target)',
  'create unique index registry_tags_of_name on registry_tags (registry_id, repository, tag)',
  'create index registry_tags_of_manifest on registry_tags (registry_id, repository, digest)',
  'create index registry_tags_by_push on registry_tags (registry_id, pushed_at, id)',
  'create index registry_tags_by_repository on registry_tags (registry_id, repository, id)',
  'create index registry_tags_by_tag on registry_tags (registry_id, tag, pushed_at, id)',
  'create index registry_uploads_of_registry on registry_uploads (registry_id, created_at)',
];
