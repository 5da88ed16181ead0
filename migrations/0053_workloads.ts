import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/**
 * Workloads: a process type of a release in a cluster, with as many instances as it should have. Their instances are
 * rows that follow the pods.
 */
export async function up(knex: Knex): Promise<void> {
  await createWorkloads(knex);
  await knex.schema.alterTable('instances', (table) => {
    // Of the cluster: the pod that the row follows. Null on a host.
    table.text('pod_uid');
    table
      .specificType('workload_id', 'text collate "C"')
      .references('workloads.id')
      .onDelete('cascade')
      .withKeyName('instances_workload');
    // Where its port is: core/outbound/network_location.ts. Null: the host finds it.
    table.jsonb('location');
  });
  for (const sql of STATEMENTS) await knex.raw(sql);
}

async function createWorkloads(knex: Knex): Promise<void> {
  await knex.schema.createTable('workloads', (table) => {
    resourceColumns(table);
    for (const [column, parent] of PARENTS)
      table
        .specificType(column, 'text collate "C"')
        .notNullable()
        .references(`${parent}.id`)
        .withKeyName(`workloads_${column.replace('_id', '')}`);
    table.specificType('preview_id', 'text collate "C"').references('previews.id').withKeyName('workloads_preview');
    table.specificType('process_id', 'text collate "C"').notNullable();
    table.text('process_type').notNullable();
    table.integer('instances').notNullable();
    loopColumns(table);
  });
}

const PARENTS = [
  ['project_id', 'projects'],
  ['application_id', 'applications'],
  ['deployment_id', 'deployments'],
  ['release_id', 'releases'],
] as const;

const STATEMENTS = [
  'create unique index workloads_release on workloads (release_id, process_id)',
  'create index workloads_of_application on workloads (application_id)',
  'create index workloads_of_project on workloads (project_id)',
  'create index workloads_of_deployment on workloads (deployment_id)',
  'create index workloads_of_preview on workloads (preview_id) where preview_id is not null',
  'create index workloads_due on workloads (next_at) where next_at is not null',
  'create unique index instances_pod on instances (pod_uid) where pod_uid is not null',
  'create index instances_of_workload on instances (workload_id) where workload_id is not null',
  // Pods have addresses of their own, and so the same port.
  'drop index instances_port',
  'create unique index instances_port on instances (port) where port is not null and pod_uid is null',
  'drop trigger instances_route on instances',
  `create trigger instances_route after insert or delete or update of status, port, location, deleted_at on instances
    for each row execute function route_changed()`,
];
