import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/** Git integrations, shared repositories, and what the platform watches at the providers. */
export async function up(knex: Knex): Promise<void> {
  await createIntegrations(knex);
  await createSharedRepositories(knex);
  await createRepositories(knex);
  await createPullRequests(knex);
  for (const sql of INDEXES) await knex.raw(sql);
}

async function createIntegrations(knex: Knex): Promise<void> {
  await knex.schema.createTable('git_integrations', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('provider').notNullable();
    table.text('base_url');
    table.text('auth_type').notNullable();
    table.jsonb('account');
    // Of the account: what makes an integration one of its kind.
    table.text('account_id');
    // The tokens, and the proof of an authorization that is under way: sealed JSON.
    table.text('sealed_tokens');
    table.specificType('token_expires_at', 'timestamptz(3)');
    table.text('sealed_grant');
    table.specificType('grant_expires_at', 'timestamptz(3)');
    table.text('status').notNullable();
    table.text('status_reason');
    table.specificType('last_verified_at', 'timestamptz(3)');
    table.bigInteger('observed_generation').notNullable().defaultTo(0);
    table.check(`status in ('pending', 'active', 'error')`, [], 'git_integrations_status');
  });
}

async function createSharedRepositories(knex: Knex): Promise<void> {
  await knex.schema.createTable('shared_repositories', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.specificType('name', 'text collate "C"').notNullable();
    table.text('url').notNullable();
    table.text('access').notNullable();
    table.specificType('git_integration_id', 'text collate "C"').references('git_integrations.id');
    table.text('default_branch').notNullable();
    // {public_key, fingerprint, created_at}; the private half is sealed.
    table.jsonb('deploy_key');
    table.text('sealed_key');
    // A line of known_hosts.
    table.text('host_key');
    table.text('sealed_hook').notNullable();
    table.text('hook_hash').notNullable();
    table.text('status').notNullable();
    table.text('status_reason');
    table.specificType('last_verified_at', 'timestamptz(3)');
    table.bigInteger('observed_generation').notNullable().defaultTo(0);
    table.check(`status in ('pending', 'active', 'error')`, [], 'shared_repositories_status');
  });
  await knex.schema.createTable('shared_repository_projects', (table) => {
    table
      .specificType('shared_repository_id', 'text collate "C"')
      .notNullable()
      .references('shared_repositories.id')
      .onDelete('cascade');
    table.specificType('project_id', 'text collate "C"').notNullable().references('projects.id');
    table.specificType('created_at', 'timestamptz(3)').notNullable().defaultTo(knex.fn.now());
    table.primary(['shared_repository_id', 'project_id'], {
      constraintName: 'shared_repository_projects__already_exists',
    });
  });
}

/** Repositories of integrations that applications use: how they are cloned, and the webhook at the provider. */
async function createRepositories(knex: Knex): Promise<void> {
  await knex.schema.createTable('git_repositories', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table.specificType('project_id', 'text collate "C"').notNullable();
    table
      .specificType('git_integration_id', 'text collate "C"')
      .notNullable()
      .references('git_integrations.id')
      .onDelete('cascade');
    table.text('repository_id').notNullable();
    table.text('full_name').notNullable();
    table.text('clone_url').notNullable();
    table.text('default_branch');
    // Token of the address and secret of the signatures: sealed JSON.
    table.text('sealed_hook').notNullable();
    table.text('hook_hash').notNullable();
    table.text('provider_hook_id');
    // Why there is none at the provider; the user then creates it.
    table.text('hook_reason');
    table.specificType('checked_at', 'timestamptz(3)');
    table.integer('failures').notNullable().defaultTo(0);
    loopColumns(table);
  });
}

/** Pull requests that have, or may get, a preview of an application. */
async function createPullRequests(knex: Knex): Promise<void> {
  await knex.schema.createTable('pull_requests', (table) => {
    table.specificType('id', 'text collate "C"').primary();
    table.specificType('project_id', 'text collate "C"').notNullable();
    table
      .specificType('application_id', 'text collate "C"')
      .notNullable()
      .references('applications.id')
      .onDelete('cascade');
    table.text('git_repository_id').notNullable();
    table.integer('number').notNullable();
    // What happened to it, counted, and up to which of it it was read from the provider.
    table.bigInteger('events').notNullable().defaultTo(1);
    table.bigInteger('read_events').notNullable().defaultTo(0);
    table.text('state');
    table.text('commit_sha');
    table.boolean('from_fork').notNullable().defaultTo(false);
    // What was reported last, as text; equal means nothing is to be said.
    table.text('reported');
    table.text('comment_id');
    table.text('comment');
    table.integer('failures').notNullable().defaultTo(0);
    loopColumns(table);
    table.unique(['application_id', 'number'], { indexName: 'pull_requests_of_application' });
  });
  await knex.schema.alterTable('auto_deploys', (table) => {
    // A head whose checks run, since when.
    table.text('awaited_sha');
    table.specificType('awaited_since', 'timestamptz(3)');
  });
  await knex.schema.alterTable('previews', (table) => {
    // The code is of somebody who may have no access to the repository: it gets no variables and no databases.
    table.boolean('from_fork').notNullable().defaultTo(false);
  });
}

const INDEXES = [
  `create unique index git_integrations__already_exists on git_integrations
     (project_id, provider, coalesce(base_url, ''), account_id) where account_id is not null`,
  'create index git_integrations_by_id on git_integrations (project_id, id)',
  'create index git_integrations_by_name on git_integrations (project_id, name, id)',
  'create index git_integrations_by_provider on git_integrations (project_id, provider, id)',
  'create index git_integrations_by_status on git_integrations (project_id, status, id)',
  'create unique index shared_repositories__already_exists__url on shared_repositories (project_id, url)',
  'create unique index shared_repositories_hook on shared_repositories (hook_hash)',
  'create index shared_repositories_by_id on shared_repositories (project_id, id)',
  'create index shared_repositories_by_name on shared_repositories (project_id, name, id)',
  'create index shared_repositories_by_status on shared_repositories (project_id, status, id)',
  `create index shared_repositories_of_integration on shared_repositories (git_integration_id)
     where git_integration_id is not null`,
  'create index shared_repository_projects_by_project on shared_repository_projects (project_id, shared_repository_id)',
  `create unique index git_repositories_of_integration on git_repositories (git_integration_id, repository_id)
     where deleted_at is null`,
  'create unique index git_repositories_hook on git_repositories (hook_hash)',
  'create index git_repositories_due on git_repositories (next_at) where next_at is not null',
  // What a pull request says of its preview is out of date when the preview has moved.
  `create function pull_request_of_preview() returns trigger language plpgsql as $$
    begin
      update pull_requests set generation = generation + 1, next_at = now()
        where application_id = new.application_id and number = new.pull_request_number;
      return null;
    end $$`,
  `create trigger previews_pull_request after insert or update of status, deleted_at on previews for each row
     when (new.pull_request_number is not null) execute function pull_request_of_preview()`,
  'create index pull_requests_due on pull_requests (next_at) where next_at is not null',
  `create index applications_by_git_integration on applications ((source ->> 'git_integration_id'))
     where source ->> 'git_integration_id' is not null and deleted_at is null`,
  `create index applications_by_shared_repository on applications ((source ->> 'shared_repository_id'))
     where source ->> 'shared_repository_id' is not null and deleted_at is null`,
];
