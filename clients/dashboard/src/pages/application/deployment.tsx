// A deployment: its steps with their seconds, its live log, and what can be done about it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { request, timeOfApi } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useStream } from '../../api/follow';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Problem } from '../../parts/form';
import { LogLines, LogView } from '../../parts/log_view';
import { useWrapping, WrapSwitch } from '../../parts/log_wrap';
import { Facts, Section, Waiting } from '../../parts/page';
import { ResourceLink } from '../../parts/resource_name';
import { isUnsettled, Status, StatusReason } from '../../parts/status';
import { Ago, durationText } from '../../parts/time';
import { DeployAgain } from './deploy';
import { DEPLOYMENT_FIELDS, Rollback, whatOf } from './deployments';
import { ApplicationFrame, type Shown } from './frame';

const DEPLOYMENT = graphql(
  `
    query Deployment($id: ID!, $deployment_id: ID!) {
      getDeployment(id: $id, deployment_id: $deployment_id) {
        ...DeploymentFields
        commit_author
        source_deployment_id
        clear_cache
        preview_id
        steps {
          name
          started_at
          finished_at
        }
      }
    }
  `,
  [DEPLOYMENT_FIELDS],
);
const LOG = graphql(`
  subscription DeploymentLog($id: ID!, $deployment_id: ID!, $after: String) {
    followDeploymentLogs(id: $id, deployment_id: $deployment_id, after: $after) {
      position
      timestamp
      level
      message
      step
    }
  }
`);
const CANCEL = graphql(`
  mutation Cancel($id: ID!, $deployment_id: ID!) {
    cancelDeployment(id: $id, deployment_id: $deployment_id) {
      id
    }
  }
`);

type Deployment = ResultOf<typeof DEPLOYMENT>['getDeployment'];

export function DeploymentPage({ id, deployment_id }: { id: string; deployment_id: string }) {
  return (
    <ApplicationFrame
      id={id}
      section="Deployment"
      command={(app) => `svc logs --deployment ${deployment_id} --follow${app}`}
    >
      {(shown) => <One key={deployment_id} shown={shown} deploymentId={deployment_id} />}
    </ApplicationFrame>
  );
}

function One({ shown, deploymentId }: { shown: Shown; deploymentId: string }) {
  const { application, reload: reloadApplication } = shown;
  const { data, error, reload } = useQuery(DEPLOYMENT, { id: application.id, deployment_id: deploymentId });
  const deployment = data?.getDeployment;
  const isMoving = isUnsettled(deployment?.status);
  useMoving(isMoving, async () => {
    await reload();
    await reloadApplication();
  });
  const cancel = useAction(async () => {
    await request(CANCEL, { id: application.id, deployment_id: deploymentId });
    await reload();
  });
  if (!deployment) return <Waiting error={error} rows={6} />;
  return (
    <Section
      title={`Deployment #${deployment.number}`}
      actions={<Actions {...{ shown, deployment, isMoving }} cancel={() => void cancel.run()} />}
    >
      <Problem error={cancel.error} />
      <p class="headline" aria-live="polite">
        <StatusReason value={deployment.status}>
          {durationText(deployment.started_at, deployment.finished_at)}
        </StatusReason>
      </p>
      {deployment.status_reason && <p class="notice bad">{deployment.status_reason}</p>}
      <Facts
        facts={[
          ['What', whatOf(deployment), 'double'],
          ...(deployment.commit_author ? ([['Author', deployment.commit_author]] as const) : []),
          ['Trigger', deployment.trigger.replace('_', ' ')],
          ...(deployment.source_deployment_id
            ? ([['Returns to', <ReturnsTo key="to" shown={shown} id={deployment.source_deployment_id} />]] as const)
            : []),
          ['Started by', deployment.created_by.name],
          ['Created', <Ago time={deployment.created_at} />],
          ...(deployment.clear_cache ? ([['Build cache', 'cleared']] as const) : []),
        ]}
      />
      <Steps deployment={deployment} isMoving={isMoving} />
      <BuildLog id={application.id} deploymentId={deploymentId} isOver={!isMoving} />
    </Section>
  );
}

const ReturnsTo = ({ shown, id }: { shown: Shown; id: string }) => (
  <ResourceLink projectId={shown.application.project_id} id={id} kind="deployment" />
);

interface ActionsProps {
  shown: Shown;
  deployment: Deployment;
  isMoving: boolean;
  cancel(): void;
}

function Actions({ shown, deployment, isMoving, cancel }: ActionsProps) {
  const { application, mayChange } = shown;
  return (
    <>
      {mayChange && isMoving && (
        <button type="button" class="quiet" onClick={cancel}>
          Cancel
        </button>
      )}
      {mayChange && <Rollback deployment={deployment} shown={shown} />}
      {/* Of a preview, its branch deploys again. */}
      {mayChange && !isMoving && !deployment.preview_id && (
        <DeployAgain application={application} deployment={deployment} />
      )}
    </>
  );
}

const STEPS: Record<Deployment['steps'][number]['name'], string> = {
  fetch: 'Fetch the source',
  plan: 'Find out how to build it',
  equip: 'Install the tools of the build',
  build: 'Build',
  image: 'Take the image of the build',
  copy: 'Copy the files of the promoted deployment',
  pull: 'Pull the image',
  release: 'Make the release',
  publish: 'Publish the image of the release',
  command: 'Release command',
  instances: 'Start instances and check their health',
  activate: 'Switch to the new version',
};

function Steps({ deployment, isMoving }: { deployment: Deployment; isMoving: boolean }) {
  const { steps, status } = deployment;
  useSecondHand(isMoving);
  if (!steps.length) return null;
  const stateOf = (isLast: boolean): string => {
    if (!isLast) return 'done';
    if (isMoving) return 'running';
    return ['failed', 'canceled'].includes(status) ? status : 'done';
  };
  return (
    <ol class="deploy-steps" aria-label="Steps">
      {steps.map(({ name, started_at, finished_at }, index) => (
        <li key={name}>
          <Status value={stateOf(index === steps.length - 1)} />
          <span class="deploy-step">{STEPS[name]}</span>
          <span class="deploy-seconds">{secondsText(started_at, finished_at)}</span>
        </li>
      ))}
    </ol>
  );
}

/** Draws again each second, while something is counted. */
function useSecondHand(isOn: boolean): void {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => tick((before) => before + 1), 1_000);
    return () => clearInterval(timer);
  }, [isOn]);
}

/** `under 0.1 s`, `0.4 s`, `12 s`, `1 min 12 s`. */
function secondsText(from: string, to: string | null): string {
  const ms = Math.max(0, (to ? Date.parse(to) : timeOfApi()) - Date.parse(from));
  if (ms < 100) return 'under 0.1 s';
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function BuildLog({ id, deploymentId, isOver }: { id: string; deploymentId: string; isOver: boolean }) {
  const lines = useRef(new LogLines()).current;
  const [version, setVersion] = useState(0);
  const { wraps, wrap } = useWrapping();
  const state = useStream(LOG, { id, deployment_id: deploymentId }, (rows) => {
    lines.append(rows.map(({ step, ...line }) => ({ ...line, origin: step })));
    setVersion((before) => before + 1);
  });
  return (
    <>
      <header class="log-head">
        <h3>Log</h3>
        {isOver ? <span class="faint">The deployment has finished.</span> : <Status value={state} />}
        <div class="log-tools">
          <WrapSwitch {...{ wraps, wrap }} />
        </div>
      </header>
      <LogView label="Log of the deployment" {...{ lines, version, wraps }} empty="No lines yet." />
    </>
  );
}
