import type { Knex } from 'knex';

/** Records that the platform makes for other resources of a project, found by their owner. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('domains', (table) => {
    table.text('dns').notNullable().defaultTo('automatic');
    table.check(`dns in ('automatic', 'manual')`, [], 'domains_dns');
  });
  await knex.raw(
    `create index dns_records_of_owner on dns_records ((managed_by->>'id'), (managed_by->>'type'))
       where managed_by is not null`,
  );
  // Which domains of a project stand below a zone.
  await knex.raw('create index domains_of_project on domains (project_id, id) where deleted_at is null');
}
