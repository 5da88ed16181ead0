import type { Knex } from 'knex';

/**
 * Whether the instances of a deployment run on the cluster of WORKLOADS=kubernetes: decided once, so that those of an
 * installation that ran them itself go on there until their application is deployed again.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table deployments add column on_cluster boolean not null default false');
  // With an instance on this machine nothing has run on a cluster yet, whether releases have images or not.
  await knex.raw(`update deployments d set on_cluster = true
    where exists (select 1 from releases r where r.deployment_id = d.id and r.image is not null)
      and not exists (select 1 from instances where pod_uid is null)`);
}
