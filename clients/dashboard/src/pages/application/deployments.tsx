// The deployments of an application, and one of them with its live log.
import { useRef, useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useStream } from '../../api/follow';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Problem } from '../../parts/form';
import { LogLines, LogView } from '../../parts/log_view';
import { Empty, Facts, Section, Table, Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { isUnsettled, Status, StatusReason } from '../../parts/status';
import { Ago, durationText } from '../../parts/time';
import { navigate } from '../../router';
import { Clip } from '../../parts/table';
import { ApplicationFrame, type Shown } from './frame';

const DEPLOYMENT_FIELDS = graphql(`
  fragment DeploymentFields on Deployment {
    id
    number
    status
    status_reason
    trigger
    branch
    commit_sha
    commit_message
    rollback_possible
    created_at
    started_at
    finished_at
    created_by {
      name
    }
    source {
      type
    }
  }
`);
const DEPLOYMENTS = graphql(
  `
    query Deployments($id: ID!, $cursor: String) {
      listDeployments(id: $id, limit: 20, cursor: $cursor) {
        data {
          ...DeploymentFields
        }
        next_cursor
      }
    }
  `,
  [DEPLOYMENT_FIELDS],
);
const DEPLOYMENT = graphql(
  `
    query Deployment($id: ID!, $deployment_id: ID!) {
      getDeployment(id: $id, deployment_id: $deployment_id) {
        ...DeploymentFields
        commit_author
        image
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
const ROLLBACK = graphql(`
  mutation Rollback($id: ID!, $input: RollbackApplicationInput!) {
    rollbackApplication(id: $id, input: $input) {
      id
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

type Listed = ResultOf<typeof DEPLOYMENT_FIELDS>;

export function Deployments({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Deployments" command={`svc api listDeployments ${id}`}>
      {(shown) => <List shown={shown} />}
    </ApplicationFrame>
  );
}

function List({ shown }: { shown: Shown }) {
  const { id } = shown.application;
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error, reload } = useQuery(DEPLOYMENTS, { id, cursor });
  const list = data?.listDeployments;
  useMoving(Boolean(list?.data.some(({ status }) => isUnsettled(status))), reload);
  if (!list) return <Waiting error={error} />;
  if (!list.data.length && !cursor)
    return (
      <Empty title="No deployments yet" command={`svc deploy --app ${id}`}>
        Each deployment stays in this list, and the last ten that were active can be brought back.
      </Empty>
    );
  return (
    <>
      <Table label="Deployments" head={['Number', 'Status', 'What', 'Started', 'Duration', '']}>
        {list.data.map((deployment) => (
          <Row key={deployment.id} deployment={deployment} shown={shown} />
        ))}
      </Table>
      <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />
    </>
  );
}

function Row({ deployment, shown }: { deployment: Listed; shown: Shown }) {
  const { id } = shown.application;
  return (
    <tr>
      <th scope="row">
        <a href={`/applications/${id}/deployments/${deployment.id}`}>#{deployment.number}</a>
      </th>
      <td>
        <Status value={deployment.status} title={deployment.status_reason} />
      </td>
      <td>
        <Clip text={whatOf(deployment)} />
      </td>
      <td>
        <Ago time={deployment.created_at} /> <span class="faint">by {deployment.created_by.name}</span>
      </td>
      <td>{durationText(deployment.started_at, deployment.finished_at)}</td>
      <td>{shown.mayChange && <Rollback deployment={deployment} shown={shown} />}</td>
    </tr>
  );
}

type Deployed = Pick<Listed, 'id' | 'number' | 'rollback_possible'>;

function Rollback({ deployment, shown }: { deployment: Deployed; shown: Shown }) {
  const [asks, setAsks] = useState(false);
  const { id, name, current_deployment_id } = shown.application;
  if (!deployment.rollback_possible || deployment.id === current_deployment_id) return null;
  const work = async (): Promise<void> => {
    const { rollbackApplication } = await request(ROLLBACK, { id, input: { deployment_id: deployment.id } });
    navigate(`/applications/${id}/deployments/${rollbackApplication.id}`);
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Roll back<span class="off-screen"> to #{deployment.number}</span>
      </button>
      {asks && (
        <Confirm
          title={`Roll back to #${deployment.number}?`}
          verb="Roll back"
          work={work}
          onClose={() => setAsks(false)}
        >
          {name} runs the files of deployment #{deployment.number} again. Nothing is built. Environment variables and
          settings are those of now.
        </Confirm>
      )}
    </>
  );
}

export function DeploymentPage({ id, deployment_id }: { id: string; deployment_id: string }) {
  return (
    <ApplicationFrame
      id={id}
      section="Deployment"
      command={`svc logs --deployment ${deployment_id} --follow --app ${id}`}
    >
      {(shown) => <One key={deployment_id} shown={shown} deploymentId={deployment_id} />}
    </ApplicationFrame>
  );
}

function One({ shown, deploymentId }: { shown: Shown; deploymentId: string }) {
  const { application, mayChange, reload: reloadApplication } = shown;
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
  const actions = (
    <>
      {mayChange && isMoving && (
        <button type="button" class="quiet" onClick={() => void cancel.run()}>
          Cancel
        </button>
      )}
      {deployment.status === 'active' && application.url && (
        <a role="button" href={application.url} target="_blank" rel="noreferrer">
          Open the application
        </a>
      )}
      {mayChange && <Rollback deployment={deployment} shown={shown} />}
    </>
  );
  return (
    <Section title={`Deployment #${deployment.number}`} actions={actions}>
      <Problem error={cancel.error} />
      <p class="headline" aria-live="polite">
        <StatusReason value={deployment.status}>
          {durationText(deployment.started_at, deployment.finished_at)}
        </StatusReason>
      </p>
      {deployment.status_reason && <p class="notice bad">{deployment.status_reason}</p>}
      <Facts
        facts={[
          ['What', whatOf(deployment)],
          ['Trigger', deployment.trigger.replace('_', ' ')],
          ['Started by', deployment.created_by.name],
          ['Created', <Ago time={deployment.created_at} />],
        ]}
      />
      <BuildLog id={application.id} deploymentId={deploymentId} isOver={!isMoving} />
    </Section>
  );
}

function BuildLog({ id, deploymentId, isOver }: { id: string; deploymentId: string; isOver: boolean }) {
  const lines = useRef(new LogLines()).current;
  const [version, setVersion] = useState(0);
  const state = useStream(LOG, { id, deployment_id: deploymentId }, (rows) => {
    lines.append(rows.map(({ step, ...line }) => ({ ...line, origin: step })));
    setVersion((before) => before + 1);
  });
  return (
    <>
      <header class="log-head">
        <h3>Log</h3>
        {isOver ? <span class="faint">The deployment has finished.</span> : <Status value={state} />}
      </header>
      <LogView label="Log of the deployment" lines={lines} version={version} empty="No lines yet." />
    </>
  );
}

interface What {
  branch: string | null;
  commit_sha: string | null;
  commit_message: string | null;
  image?: string | null;
  source: { type: string } | null;
}

function whatOf({ branch, commit_sha, commit_message, image, source }: What): string {
  if (image) return image;
  const commit = [branch, commit_sha?.slice(0, 7)].filter(Boolean).join(' @ ');
  return [commit, commit_message].filter(Boolean).join(': ') || (source?.type ?? '–');
}
