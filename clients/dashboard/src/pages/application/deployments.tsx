// The deployments of an application: what each was made of, and a new one of a commit, a branch, a folder or an image.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Empty, Section, Table, Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { isUnsettled, Status } from '../../parts/status';
import { Ago, bytesText, durationText } from '../../parts/time';
import { address, navigate, setQuery } from '../../router';
import { Clip } from '../../parts/table';
import { DeployDialog } from './deploy';
import { ApplicationFrame, type Shown } from './frame';
import { appFlags } from '../../parts/command';

export const DEPLOYMENT_FIELDS = graphql(`
  fragment DeploymentFields on Deployment {
    id
    number
    status
    status_reason
    trigger
    branch
    commit_sha
    commit_message
    image
    rollback_possible
    created_at
    started_at
    finished_at
    created_by {
      name
    }
    source {
      type
      source_upload_id
      bytes
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
const ROLLBACK = graphql(`
  mutation Rollback($id: ID!, $input: RollbackApplicationInput!) {
    rollbackApplication(id: $id, input: $input) {
      id
    }
  }
`);

type Listed = ResultOf<typeof DEPLOYMENT_FIELDS>;

export function Deployments({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Deployments" command={(app) => `svc deployments${app}`}>
      {(shown) => <List shown={shown} />}
    </ApplicationFrame>
  );
}

function List({ shown }: { shown: Shown }) {
  const { id } = shown.application;
  const [cursor, setCursor] = useState<string | null>(null);
  const asks = address.value.query.has('deploy');
  const { data, error, reload } = useQuery(DEPLOYMENTS, { id, cursor });
  const list = data?.listDeployments;
  useMoving(Boolean(list?.data.some(({ status }) => isUnsettled(status))), reload);
  const actions = shown.mayChange && (
    <button type="button" class="quiet" onClick={() => setQuery({ deploy: 'files' })}>
      Deploy something else …
    </button>
  );
  return (
    <Section title="Deployments" actions={actions}>
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && !cursor && (
        <Empty title="No deployments yet" command={`svc deploy${appFlags(shown.application)}`}>
          Each deployment stays in this list, and the last ten that were active can be brought back.
        </Empty>
      )}
      {list && list.data.length > 0 && (
        <Table label="Deployments" head={['Number', 'Status', 'What', 'Started', 'Duration', '']}>
          {list.data.map((deployment) => (
            <Row key={deployment.id} deployment={deployment} shown={shown} />
          ))}
        </Table>
      )}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      {asks && shown.mayChange && (
        <DeployDialog application={shown.application} onClose={() => setQuery({ deploy: '' })} />
      )}
    </Section>
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

export function Rollback({ deployment, shown }: { deployment: Deployed; shown: Shown }) {
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

/** Such as `main @ 3f2a1bc: Show prices with tax`. */
export function whatOf({ branch, commit_sha, commit_message, image, source }: Omit<Listed, keyof Deployed>): string {
  if (image) return image;
  if (source?.type === 'upload') return `Upload${source.bytes ? `, ${bytesText(source.bytes)}` : ''}`;
  const commit = [branch, commit_sha?.slice(0, 7)].filter(Boolean).join(' @ ');
  return [commit, commit_message].filter(Boolean).join(': ') || (source?.type ?? '–');
}
