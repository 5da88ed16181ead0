// Whose log a request means.
import type { Context } from '../../core/context';
import { limits } from '../../core/limits';
import { Application } from '../applications/application';
import { settingsOf } from '../applications/application_settings';
import { DatabaseReplica } from '../databases/database_replica';
import { Deployment } from '../deployments/deployment';
import { ManagedDatabase } from '../databases/database';
import { Run } from './run';
import type { LogScope } from '../applications/log_line/conditions';

/**
 * The log of an application, or of one of its previews. @throws not_found for the application; a preview that is none
 * has no lines
 */
export async function applicationLog(
  ctx: Context,
  { id, preview_id }: { id: string; preview_id?: string | null },
): Promise<LogScope> {
  const application = await Application.get(ctx, id);
  return {
    column: 'resource_id',
    id: preview_id ?? application.id,
    application_id: application.id,
    retention_days: settingsOf(application).log_retention_days,
  };
}

/** The log of a deployment. @throws not_found */
export async function deploymentLog(
  ctx: Context,
  { id, deployment_id }: { id: string; deployment_id: string },
): Promise<LogScope> {
  const application = await Application.get(ctx, id);
  const deployment = await Deployment.get(ctx, deployment_id, { application_id: application.id });
  return {
    column: 'deployment_id',
    id: deployment.id,
    application_id: application.id,
    retention_days: settingsOf(application).log_retention_days,
  };
}

/** The log of a run. @throws not_found */
export async function runLog(ctx: Context, { id, run_id }: { id: string; run_id: string }): Promise<LogScope> {
  const application = await Application.get(ctx, id);
  const run = await Run.get(ctx, run_id, { application_id: application.id });
  const { trigger_type, deployment_id } = run;
  return {
    // Lines of a release command stand in the log of its deployment.
    ...(trigger_type === 'release'
      ? { column: 'deployment_id', id: deployment_id, step: 'release' }
      : { column: 'resource_id', id: run.id }),
    application_id: application.id,
    retention_days: settingsOf(application).log_retention_days,
  };
}

/**
 * The log of a database, or of one of its replicas. @throws not_found for the database; a replica that is none has no
 * lines
 */
export async function databaseLog(
  ctx: Context,
  { id, replica_id }: { id: string; replica_id?: string | null },
): Promise<LogScope> {
  const database = await ManagedDatabase.get(ctx, id);
  const known = replica_id == null || (await DatabaseReplica.exists(ctx, replica_id, database.id));
  return {
    column: 'resource_id',
    id: known ? (replica_id ?? database.id) : '',
    project_id: database.project_id,
    retention_days: limits.databaseLogDays,
  };
}
