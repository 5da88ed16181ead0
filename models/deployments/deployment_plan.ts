// What a deployment needs to know of its application while it is built and released.
import type { Sql } from '../../core/context';
import type { SecretBox } from '../../core/secrets';
import type { ApplicationSettings } from '../../schema/types';
import type { Application } from '../applications/application';
import { settingsOf } from '../applications/application_settings';
import { variablesOf } from '../environment/environment_variable';
import { isFromFork } from './from_fork';
import { variablesOfPreview } from './preview_databases';
import { named } from '../../db/statement';

export interface Planning {
  name: string;
  region: string;
  tenant: number;
  project_id: string;
  settings: ApplicationSettings;
  processes: { type: string; command: string | null; instances: number }[];
  /** @param previewId null: of the application itself */
  variables(secrets: SecretBox, stage: 'build' | 'runtime', previewId: string | null): Promise<Record<string, string>>;
  /** SVC_* of a deployment. */
  platformVariables(deployment: {
    id: string;
    commit_sha: string | null;
    preview_id: string | null;
  }): Record<string, string>;
}

const FIND = named(
  'select id, name, region, tenant, project_id, settings from applications where id = $1 and deleted_at is null',
);
const PROCESSES = named('select type, command, instances from processes where application_id = $1 order by type');

type PlannedApplication = Pick<Application, 'id' | 'name' | 'region' | 'settings' | 'project_id'> & { tenant: number };

/** null where the application has gone. */
export async function findPlanning(sql: Sql, applicationId: string): Promise<Planning | null> {
  const [found] = await sql.query<PlannedApplication>(FIND, [applicationId]);
  if (!found) return null;
  const { id, name, region, tenant, project_id } = found;
  return {
    name,
    region,
    tenant,
    project_id,
    settings: settingsOf(found as unknown as Application),
    processes: await sql.query<Planning['processes'][number]>(PROCESSES, [applicationId]),
    variables: async (secrets, stage, previewId) =>
      (await isFromFork(sql, previewId))
        ? {}
        : {
            ...(await variablesOf(sql, secrets, applicationId, stage)),
            ...(await variablesOfPreview(sql, secrets, previewId)),
          },
    platformVariables: (deployment) =>
      platformVariables({
        application_id: id,
        application_name: name,
        region,
        deployment_id: deployment.id,
        ...deployment,
      }),
  };
}

/** The variables that the platform gives to everything that runs for an application. */
export function platformVariables(of: {
  application_id: string;
  application_name: string;
  region: string;
  deployment_id: string;
  commit_sha: string | null;
  preview_id: string | null;
}): Record<string, string> {
  return {
    SVC_APPLICATION_ID: of.application_id,
    SVC_APPLICATION_NAME: of.application_name,
    SVC_REGION: of.region,
    SVC_DEPLOYMENT_ID: of.deployment_id,
    ...(of.commit_sha !== null && { SVC_COMMIT_SHA: of.commit_sha }),
    ...(of.preview_id !== null && { SVC_PREVIEW_ID: of.preview_id }),
  };
}
