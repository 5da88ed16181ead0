// Makes an application with its settings and variables, and deploys it.
import { request } from '../../api/client';
import { graphql, type VariablesOf } from '../../api/graphql';
import { navigate } from '../../router';
import type { Chosen } from '../../source/files';
import { sendSource } from '../../source/send';
import type { Draft } from '../application/draft';

const CREATE = graphql(`
  mutation CreateApplication($project_id: ID!, $input: CreateApplicationInput!) {
    createApplication(project_id: $project_id, input: $input) {
      id
      processes(limit: 20) {
        id
        type
      }
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateNewApplication($id: ID!, $input: UpdateApplicationInput!) {
    updateApplication(id: $id, input: $input) {
      id
      processes(limit: 20) {
        id
        type
      }
    }
  }
`);
const SETTINGS = graphql(`
  mutation SettingsOfNewApplication($id: ID!, $input: UpdateApplicationSettingsInput!) {
    updateApplicationSettings(id: $id, input: $input) {
      application_id
    }
  }
`);
const START_COMMAND = graphql(`
  mutation StartCommand($id: ID!, $process_id: ID!, $input: UpdateProcessInput!) {
    updateProcess(id: $id, process_id: $process_id, input: $input) {
      id
    }
  }
`);
const VARIABLES = graphql(`
  mutation VariablesOfNewApplication($id: ID!, $input: SetEnvironmentVariablesInput!) {
    setEnvironmentVariables(id: $id, input: $input) {
      key
    }
  }
`);
const DEPLOY = graphql(`
  mutation FirstDeployment($id: ID!, $input: CreateDeploymentInput!) {
    createDeployment(id: $id, input: $input) {
      id
    }
  }
`);

export type Input = VariablesOf<typeof CREATE>['input'];

export interface NewApplicationParts {
  projectId: string;
  input: Input;
  root_directory: string;
  build_command: string;
  start_command: string;
  variables: readonly Draft[];
  /** A folder or an archive, where that is the source. */
  chosen: Chosen | null;
}

/**
 * Each step may be refused; what was made before stays, and another attempt goes on with it.
 * @param made the id of an attempt before. @param note gets the id as soon as there is one
 * @throws ApiError
 */
export async function createAndDeploy(
  parts: NewApplicationParts,
  made: string | null,
  note: (id: string) => void,
  progress: (text: string) => void,
): Promise<void> {
  const application = made ? await change(made, parts.input) : await create(parts);
  const { id } = application;
  note(id);
  const { root_directory, build_command, start_command } = parts;
  if (root_directory || build_command || made) {
    const build = { root_directory: root_directory || '.', build_command: build_command || null };
    await request(SETTINGS, { id, input: { build } });
  }
  const web = application.processes.find(({ type }) => type === 'web');
  if (web && (start_command || made))
    await request(START_COMMAND, { id, process_id: web.id, input: { command: start_command || null } });
  const variables = parts.variables.flatMap(({ key, value, available_at }) =>
    key ? [{ key, value, available_at }] : [],
  );
  if (variables.length) await request(VARIABLES, { id, input: { variables } });
  const source_upload_id = parts.chosen && (await sendSource(id, parts.chosen, progress));
  await deployFirst(id, source_upload_id ? { source_upload_id } : {});
}

async function create({ projectId, input }: NewApplicationParts) {
  return (await request(CREATE, { project_id: projectId, input })).createApplication;
}

/** The region of an application stays, and its preset has done its work. */
async function change(id: string, { name, source, application_type }: Input) {
  const input = { name, ...(source && { source }), ...(application_type && { application_type }) };
  return (await request(UPDATE, { id, input })).updateApplication;
}

/** The application is there, whatever becomes of its deployment: its page says what is wrong, and tries again. */
async function deployFirst(id: string, input: VariablesOf<typeof DEPLOY>['input']): Promise<void> {
  try {
    const { createDeployment } = await request(DEPLOY, { id, input });
    navigate(`/applications/${id}/deployments/${createDeployment.id}`);
  } catch (error) {
    navigate(`/applications/${id}?problem=${encodeURIComponent((error as Error).message)}`);
  }
}
