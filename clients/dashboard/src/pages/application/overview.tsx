import { Copyable } from '../../parts/copy';
import { Empty, Facts, Section, Table } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { address } from '../../router';
import { Clip } from '../../parts/table';
import { ApplicationFrame, type ApplicationData } from './frame';

export function ApplicationOverview({ id }: { id: string }) {
  const problem = address.value.query.get('problem');
  return (
    <ApplicationFrame id={id}>
      {({ application }) => (
        <>
          {problem && !application.latest_deployment && (
            <p class="notice bad" role="alert">
              The first deployment could not be started. {problem}
            </p>
          )}
          {application.status_reason && <p class="notice bad">{application.status_reason}</p>}
          {application.latest_deployment ? (
            <Summary application={application} />
          ) : (
            <Empty title="No deployments yet" command={`svc up --app ${application.id}`}>
              {application.source
                ? 'Deploy to build it and run it.'
                : 'Set a source in the settings, or upload a folder.'}
            </Empty>
          )}
          <Section title="Processes">
            <Table label="Processes" head={['Type', 'Status', 'Instances', 'Command']}>
              {application.processes.map((process) => (
                <tr key={process.id}>
                  <th scope="row">{process.type}</th>
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
        </>
      )}
    </ApplicationFrame>
  );
}

function Summary({ application }: { application: ApplicationData }) {
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
          ['Source', source ? (source.repository_url ?? source.image ?? source.template ?? source.type) : null],
          ...(source?.type === 'git' ? ([['Branch', source.branch ?? 'default branch']] as const) : []),
          ['Deploys on push', application.auto_deploy_enabled ? 'yes' : 'no'],
          ['Size', application.application_type],
          ['Region', application.region],
          ['Created', <Ago time={application.created_at} />],
        ]}
      />
    </Section>
  );
}
