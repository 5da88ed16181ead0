import type { ComponentChildren } from 'preact';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import {
  APPLICATION_FACTS,
  Attention,
  troublesOfApplication,
  troublesOfVolume,
  VOLUME_FACTS,
} from '../../parts/attention';
import { CatalogName } from '../../parts/catalog_name';
import { Copyable } from '../../parts/copy';
import { HOUR_FIELDS, LastHour } from '../../parts/last_hour';
import { Empty, Facts, Section, Table, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { address } from '../../router';
import { Address, Clip } from '../../parts/table';
import { ApplicationFrame, type ApplicationData } from './frame';
import { appFlags } from '../../parts/command';

const STATE = graphql(
  `
    query ApplicationState($id: ID!, $parts: Int!) {
      getApplication(id: $id) {
        ...ApplicationFacts
        latest_deployment {
          commit_message
          commit_author
          commit_sha
          branch
          created_by {
            name
          }
        }
        volumes(limit: 20) {
          ...VolumeFacts
        }
        metrics(metrics: [requests, responses_5xx, response_time_p95_ms], resolution_seconds: 60) {
          ...HourFields
        }
      }
    }
  `,
  [APPLICATION_FACTS, VOLUME_FACTS, HOUR_FIELDS],
);
/** So often the lines of the last hour go on. */
const STATE_POLL_MS = 30_000;

export function ApplicationOverview({ id }: { id: string }) {
  const problem = address.value.query.get('problem');
  const { data, error } = useQuery(STATE, { id, parts: 100 }, STATE_POLL_MS);
  // Shown as one: what comes later would push the rest down.
  const shown = (content: ComponentChildren): ComponentChildren => (data || error ? content : <Waiting rows={6} />);
  return (
    <ApplicationFrame id={id}>
      {({ application }) =>
        shown(
          <>
            {error && <Waiting error={error} />}
            {problem && !application.latest_deployment && (
              <p class="notice bad" role="alert">
                The first deployment could not be started. {problem}
              </p>
            )}
            {application.latest_deployment ? (
              <>
                {data && <StateNow state={data.getApplication} projectId={application.project_id} />}
                <Summary application={application} last={data?.getApplication.latest_deployment} />
              </>
            ) : (
              <Empty title="No deployments yet" command={`svc up${appFlags(application)}`}>
                {application.source
                  ? 'Deploy to build it and run it.'
                  : 'Set a source in the settings, or upload a folder.'}
              </Empty>
            )}
            <Section title="Processes">
              <Table label="Processes" head={['Type', 'Status', 'Instances', 'Command']}>
                {application.processes.map((process) => (
                  <tr key={process.id}>
                    <th scope="row">
                      <span>{process.type}</span>
                    </th>
                    <td>
                      <Status value={process.status} />
                    </td>
                    <td>
                      {process.running_instances} of {process.instances}
                    </td>
                    <td>
                      <Clip code text={process.effective_command} />
                    </td>
                  </tr>
                ))}
              </Table>
            </Section>
          </>,
        )
      }
    </ApplicationFrame>
  );
}

type State = ResultOf<typeof STATE>['getApplication'];

/** Whether it is well, and the last hour. */
function StateNow({ state, projectId }: { state: State; projectId: string }) {
  const troubles = [
    ...troublesOfApplication(state),
    ...state.volumes.flatMap((volume) => troublesOfVolume(volume, projectId)),
  ];
  return (
    <>
      <Attention troubles={troubles} well="Nothing needs attention." />
      <LastHour hour={state.metrics} />
    </>
  );
}

/** What was deployed, and by whom: the first line of the commit, its id and its author. */
function commitText(last: NonNullable<State['latest_deployment']>): string | null {
  const author = last.commit_author?.replace(/\s*<.*>$/, '') || last.created_by.name;
  const parts = [last.commit_message?.split('\n')[0], last.commit_sha?.slice(0, 7), author && `by ${author}`];
  return parts.filter(Boolean).join(' · ') || null;
}

function Source({ type, repository_url, image, template }: NonNullable<ApplicationData['source']>) {
  if (type === 'upload') return <>Folder or archive, sent by hand</>;
  if (repository_url) return <Address url={repository_url} />;
  return <>{image ?? template ?? type}</>;
}

interface SummaryProps {
  application: ApplicationData;
  last: State['latest_deployment'] | undefined;
}

function Summary({ application, last: deployed }: SummaryProps) {
  const { id, latest_deployment: last, source, url } = application;
  return (
    <Section title="Overview">
      {url && <Copyable label="address" text={url} />}
      <Facts
        facts={[
          [
            'Last deployment',
            last && (
              <a class="plain-link" href={`/applications/${id}/deployments/${last.id}`}>
                #{last.number} <Status value={last.status} title={last.status_reason} /> <Ago time={last.created_at} />
              </a>
            ),
          ],
          deployed && !deployed.commit_sha
            ? ['Deployed by', deployed.created_by.name]
            : ['Commit', deployed ? commitText(deployed) : null, 'double'],
          ['Source', source && <Source {...source} />, 'double'],
          ...(source?.type === 'git'
            ? ([
                ['Branch', source.branch ?? 'default branch'],
                ['Deploys on push', application.auto_deploy_enabled ? 'yes' : 'no'],
              ] as const)
            : []),
          ['Size', <CatalogName of="size" id={application.application_type} />],
          ['Region', <CatalogName of="region" id={application.region} />],
          ['Created', <Ago time={application.created_at} />],
        ]}
      />
    </Section>
  );
}
