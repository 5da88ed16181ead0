// An application as its jobs leave it, without a worker: rows of a deployment, its release and its instances.
import { mintId } from '../../../core/ids';
import { sealedColumns } from '../../../models/base/sealed_columns';
import type { TestService } from '../service';

export interface DeployedApplication {
  id: string;
  deployment: string;
  release: string;
  /** Process types by name. */
  processes: Record<string, string>;
}

type Sql = Pick<TestService, 'sql'> & Partial<Pick<TestService, 'platform'>>;

/**
 * Makes the application one with an active deployment, in a status. Its process types have the release, and are
 * `running`.
 */
export async function deployed(service: Sql, id: string, status = 'running'): Promise<DeployedApplication> {
  const deployment = mintId('dep');
  const release = mintId('rel');
  const [{ project_id, number }] = (await service.sql(
    `update applications set deployment_count = deployment_count + 1 where id = $1
      returning project_id, deployment_count as number`,
    [id],
  )) as [{ project_id: string; number: number }];
  await service.sql(
    `insert into deployments (id, project_id, application_id, number, trigger, status, created_by, source, plan,
      artifact_id, artifact_kept, release_id, activated_at, created_at, updated_at)
     values ($1, $2, $3, $4, 'manual', 'active', '{"type": "system", "id": null, "name": "Platform"}',
       '{"type": "preset", "preset": "static-site"}',
       '{"processes": {"web": "node server.js"}, "release_command": null}', $1, true, $5, now(), now(), now())`,
    [deployment, project_id, id, number, release],
  );
  await service.sql(
    `insert into releases (id, project_id, application_id, deployment_id, settings, processes, variables, created_at,
      updated_at)
     select $1, $2, $3, $4, '{}',
       jsonb_object_agg(type, '{"command": "serve", "memory_mb": 512, "cpus": 0.5}'::jsonb), $5, now(), now()
       from processes where application_id = $3`,
    [
      release,
      project_id,
      id,
      deployment,
      service.platform?.secrets.seal('{}', sealedColumns.releaseVariables.contextOf(release)) ?? '',
    ],
  );
  await service.sql(`update applications set status = $2, current_deployment_id = $3 where id = $1`, [
    id,
    status,
    deployment,
  ]);
  await service.sql(
    `update processes set release_id = $2, status = case when instances > 0 then 'running' else 'idle' end
      where application_id = $1`,
    [id, release],
  );
  const rows = await service.sql<{ id: string; type: string }>(
    'select id, type from processes where application_id = $1',
    [id],
  );
  return { id, deployment, release, processes: Object.fromEntries(rows.map((row) => [row.type, row.id])) };
}

/** One instance of a process type, with columns of its own choice. */
export async function instanceOf(
  service: Sql,
  application: DeployedApplication,
  type: string,
  columns: Record<string, unknown> = {},
): Promise<string> {
  const id = mintId('ins');
  const values: Record<string, unknown> = {
    id,
    application_id: application.id,
    process_id: application.processes[type],
    process_type: type,
    deployment_id: application.deployment,
    release_id: application.release,
    status: 'running',
    ...columns,
  };
  const names = Object.keys(values);
  await service.sql(
    `insert into instances (project_id, created_at, updated_at, ${names.join(', ')})
      select project_id, now(), now(), ${names.map((_, index) => `$${index + 2}`).join(', ')} from applications
      where id = $1`,
    [application.id, ...Object.values(values)],
  );
  return id;
}

/** A run of the release in service that waits for its host. */
export async function runOf(
  service: Sql,
  { id: application, deployment, release }: DeployedApplication,
): Promise<string> {
  const id = mintId('run');
  await service.sql(
    `insert into runs (id, project_id, application_id, release_id, deployment_id, command, process_type,
      application_type, timeout_seconds, created_at, updated_at)
     select $1, project_id, id, $3, $4, 'echo done', 'web', application_type, 3600, now(), now()
       from applications where id = $2`,
    [id, application, release, deployment],
  );
  return id;
}
