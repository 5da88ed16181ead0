import type { Knex } from 'knex';

/** Calls that destroy wait for a second person where the project wants it. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table projects add column approval_required_for text collate "C" not null default 'none'
    constraint projects_approval_required_for check (approval_required_for in ('none', 'keys', 'all'))`);
  await knex.raw(`create table approvals (
    id text collate "C" primary key,
    version bigint not null default 1,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    project_id text collate "C" not null references projects (id),
    status text collate "C" not null default 'pending'
      constraint approvals_status check (status in ('pending', 'approved', 'refused', 'used', 'expired')),
    fingerprint text collate "C" not null,
    is_open boolean not null default true,
    operation text not null,
    summary text not null,
    sealed_input text not null,
    if_match text,
    resource jsonb,
    affects jsonb not null,
    requested_by jsonb not null,
    requester_id text collate "C",
    key_id text collate "C",
    decided_by jsonb,
    decider_id text collate "C",
    expires_at timestamptz(3) not null,
    decided_at timestamptz(3),
    used_at timestamptz(3)
  )`);
  await knex.raw('create unique index approvals_open on approvals (fingerprint) where is_open');
  await knex.raw('create index approvals_by_id on approvals (project_id, id)');
  await knex.raw('create index approvals_by_status on approvals (project_id, status, id)');
  await knex.raw('create index approvals_by_age on approvals (created_at)');
}
