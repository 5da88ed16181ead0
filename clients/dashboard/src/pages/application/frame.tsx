// What all pages of an application share: its name and state, its tabs, its actions.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { request, type ApiError } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { pageProject } from '../../keyboard';
import { Confirm } from '../../parts/dialog';
import { Problem } from '../../parts/form';
import { isMissing, Page, Waiting, type Tab } from '../../parts/page';
import { isUnsettled, Status } from '../../parts/status';
import { address, navigate, setQuery } from '../../router';
import { mayActAs } from '../../session';
import { appFlags } from '../../parts/command';

const APPLICATION = graphql(`
  query Application($id: ID!) {
    getApplication(id: $id) {
      id
      project_id
      name
      description
      region
      application_type
      preset
      default_hostname
      url
      status
      status_reason
      current_deployment_id
      auto_deploy_enabled
      deletion_protection
      created_at
      source {
        type
        repository_url
        branch
        image
        template
      }
      latest_deployment {
        id
        number
        status
        status_reason
        created_at
        branch
        commit_sha
        image
        source {
          type
          source_upload_id
        }
      }
      processes(limit: 20) {
        id
        type
        status
        instances
        running_instances
        effective_command
      }
    }
  }
`);
export const DEPLOY = graphql(`
  mutation Deploy($id: ID!, $input: CreateDeploymentInput!) {
    createDeployment(id: $id, input: $input) {
      id
    }
  }
`);
export const START = graphql(`
  mutation Start($id: ID!) {
    startApplication(id: $id) {
      id
    }
  }
`);
const STOP = graphql(`
  mutation Stop($id: ID!) {
    stopApplication(id: $id) {
      id
    }
  }
`);
export const RESTART = graphql(`
  mutation Restart($id: ID!) {
    restartApplication(id: $id) {
      id
    }
  }
`);

export type ApplicationData = ResultOf<typeof APPLICATION>['getApplication'];

export interface Shown {
  application: ApplicationData;
  mayChange: boolean;
  reload(): Promise<void>;
}

interface FrameProps {
  id: string;
  /** Of the page, behind the name of the application. */
  section?: string;
  /** Command of `svc` that shows the same; a function gets the flags that name the application. */
  command?: string | ((app: string) => string);
  children(shown: Shown): ComponentChildren;
}

export function ApplicationFrame({ id, section, command = (app) => `svc status${app}`, children }: FrameProps) {
  const { data, error, reload } = useQuery(APPLICATION, { id });
  const application = data?.getApplication;
  const mayChange = mayActAs('developer', application?.project_id);
  const isMoving = isUnsettled(application?.status) || isUnsettled(application?.latest_deployment?.status);
  useMoving(isMoving, reload);
  useEffect(() => void (pageProject.value = application?.project_id), [application?.project_id]);
  return (
    <Page
      title={application?.name ?? 'Application'}
      beside={application && <Status value={application.status} title={application.status_reason} />}
      trail={section && application ? [{ href: `/applications/${id}`, label: application.name }] : []}
      tabs={isMissing(error) ? [] : applicationSections(id)}
      actions={application && <Actions application={application} mayChange={mayChange} reload={reload} />}
      projectId={application?.project_id}
      command={typeof command === 'function' ? application && command(appFlags(application)) : command}
    >
      {section && <h2 class="off-screen">{section}</h2>}
      {application ? children({ application, mayChange, reload }) : <Waiting error={error} rows={6} />}
    </Page>
  );
}

/** Where a folder or an archive is chosen: what has no other source is deployed from nothing else. */
export const deployFilesHref = (id: string): string => `/applications/${id}/deployments?deploy=files`;

export function applicationSections(id: string): Tab[] {
  const runs = ['Processes', 'Runs', 'Schedules'];
  const pages = ['Overview', 'Deployments', 'Logs', 'Metrics', 'Environment', ...runs, 'Domains', 'Settings'];
  return pages.map((label) => ({
    label,
    href: `/applications/${id}${label === 'Overview' ? '' : `/${label.toLowerCase()}`}`,
  }));
}

/** What can be done with an application in its state. */
export const canStart = (status: string): boolean => status === 'stopped';
export const canStop = (status: string): boolean => ['running', 'crashed'].includes(status);

/** Its page, with the question whether it is to be stopped. */
export const stopHref = (id: string): string => `/applications/${id}?ask=stop`;

function Actions({ application, mayChange, reload }: Shown) {
  const { id, name, status, url } = application;
  const deploy = useAction(async () => {
    const { createDeployment } = await request(DEPLOY, { id, input: {} });
    navigate(`/applications/${id}/deployments/${createDeployment.id}`);
  });
  const run = useAction(async (what: 'start' | 'restart') => {
    await (what === 'start' ? request(START, { id }) : request(RESTART, { id }));
    await reload();
  });
  return (
    <>
      {status === 'running' && url && (
        <a role="button" class="quiet" href={url} target="_blank" rel="noreferrer">
          Open <span class="off-screen">(in a new tab)</span>
        </a>
      )}
      {mayChange && canStart(status) && (
        <button type="button" class="quiet" onClick={() => void run.run('start')}>
          Start
        </button>
      )}
      {mayChange && canStop(status) && (
        <>
          <button type="button" class="quiet" onClick={() => void run.run('restart')}>
            Restart
          </button>
          <button type="button" class="quiet" onClick={() => setQuery({ ask: 'stop' })}>
            Stop
          </button>
        </>
      )}
      {mayChange && application.source?.type === 'upload' && (
        <a role="button" href={deployFilesHref(id)}>
          Deploy
        </a>
      )}
      {mayChange && application.source && application.source.type !== 'upload' && (
        <button type="button" aria-busy={deploy.isRunning ? true : undefined} onClick={() => void deploy.run()}>
          Deploy
        </button>
      )}
      <ActionProblem error={deploy.error ?? run.error} />
      {mayChange && canStop(status) && address.value.query.get('ask') === 'stop' && (
        <Confirm
          title={`Stop ${name}?`}
          verb="Stop"
          work={async () => {
            await request(STOP, { id });
            await reload();
          }}
          onClose={() => setQuery({ ask: '' })}
        >
          Visitors get an error until the application is started again. Its configuration and its data stay.
        </Confirm>
      )}
    </>
  );
}

function ActionProblem({ error }: { error: ApiError | null }) {
  return error && <Problem error={error} />;
}
