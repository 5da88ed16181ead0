// The home of a project: its applications and databases, with their states and what was deployed last.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../api/graphql';
import { useMoving } from '../api/use_moving';
import { useQuery } from '../api/use_query';
import { ActivityTable, useActivity } from '../parts/activity';
import { Empty, Page, Section, Table, Waiting, type Tab } from '../parts/page';
import { Paging } from '../parts/paging';
import { isUnsettled, Status } from '../parts/status';
import { Ago } from '../parts/time';
import { Address } from '../parts/table';
import { mayActAs } from '../session';

/** What the table of databases shows. */
export const DATABASE_FIELDS = graphql(`
  fragment DatabaseFields on Database {
    id
    name
    engine
    engine_version
    status
    status_reason
    storage_gb
  }
`);
const HOME = graphql(
  `
    query ProjectHome($id: ID!, $applications: String, $databases: String) {
      getProject(id: $id) {
        id
        name
        description
      }
      listApplications(project_id: $id, limit: 50, cursor: $applications, sort: "name") {
        data {
          id
          name
          status
          status_reason
          default_hostname
          url
          latest_deployment {
            id
            number
            status
            created_at
            commit_message
          }
        }
        next_cursor
      }
      listDatabases(project_id: $id, limit: 50, cursor: $databases, sort: "name") {
        data {
          ...DatabaseFields
        }
        next_cursor
      }
    }
  `,
  [DATABASE_FIELDS],
);
type Home = ResultOf<typeof HOME>;

export function projectTabs(id: string): Tab[] {
  return [
    { href: `/projects/${id}`, label: 'Overview' },
    { href: `/projects/${id}/databases`, label: 'Databases' },
    { href: `/projects/${id}/volumes`, label: 'Volumes' },
    { href: `/projects/${id}/buckets`, label: 'Buckets' },
    { href: `/projects/${id}/dns`, label: 'DNS' },
    { href: `/projects/${id}/email_domains`, label: 'Email domains' },
    { href: `/projects/${id}/observers`, label: 'Observers' },
    { href: `/projects/${id}/members`, label: 'Members' },
    { href: `/projects/${id}/keys`, label: 'Keys' },
    { href: `/projects/${id}/usage`, label: 'Usage' },
    { href: `/projects/${id}/activity`, label: 'Activity' },
    { href: `/projects/${id}/resources`, label: 'All resources' },
  ];
}

export function ProjectHome({ id }: { id: string }) {
  const [applications, goInApplications] = useState<string | null>(null);
  const [databases, goInDatabases] = useState<string | null>(null);
  const { data, error, reload } = useQuery(HOME, { id, applications, databases });
  const isMoving =
    data && [...data.listApplications.data, ...data.listDatabases.data].some((one) => isUnsettled(one.status));

  const entries = useActivity(id, () => void reload());
  useMoving(Boolean(isMoving), reload);
  const actions = mayActAs('developer', id) && (
    <a role="button" href={`/projects/${id}/new`}>
      New application
    </a>
  );
  return (
    <Page
      title={data?.getProject.name ?? 'Project'}
      tabs={projectTabs(id)}
      actions={actions}
      projectId={id}
      command={`svc api listApplications --project ${id}`}
    >
      {!data && <Waiting error={error} rows={6} />}
      {data && <Applications data={data} id={id} />}
      {data && <Paging cursor={applications} next={data.listApplications.next_cursor} go={goInApplications} />}
      {data && <Databases data={data} id={id} />}
      {data && <Paging cursor={databases} next={data.listDatabases.next_cursor} go={goInDatabases} />}
      {data && (
        <Section title="Recent activity">
          <ActivityTable projectId={id} entries={entries && entries.slice(0, 8)} />
        </Section>
      )}
    </Page>
  );
}

function Applications({ data, id }: { data: Home; id: string }) {
  const list = data.listApplications;
  return (
    <Section title="Applications">
      {list.data.length === 0 ? (
        <Empty
          title="No applications yet"
          command={`svc up --create --project ${id}`}
          action={
            mayActAs('developer', id) && (
              <a role="button" href={`/projects/${id}/new`}>
                Deploy the first application
              </a>
            )
          }
        >
          Deploy from a Git address, from an image or from a preset. It gets an address of its own at once.
        </Empty>
      ) : (
        <Table label="Applications" head={['Name', 'Status', 'Last deployment', 'Address']}>
          {list.data.map((application) => (
            <tr key={application.id}>
              <th scope="row">
                <a href={`/applications/${application.id}`}>{application.name}</a>
              </th>
              <td>
                <Status value={application.status} title={application.status_reason} />
              </td>
              <td>
                <LastDeployment application={application} />
              </td>
              <td>
                <Address url={application.url} shown={application.default_hostname} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

function LastDeployment({ application }: { application: Home['listApplications']['data'][number] }) {
  const last = application.latest_deployment;
  if (!last) return <span class="faint">never</span>;
  return (
    <a class="plain-link" href={`/applications/${application.id}/deployments/${last.id}`}>
      #{last.number} <Status value={last.status} /> <Ago time={last.created_at} />
    </a>
  );
}

function Databases({ data, id }: { data: Home; id: string }) {
  const list = data.listDatabases.data;
  return (
    <Section
      title="Databases"
      actions={mayActAs('developer', id) && list.length > 0 && <a href={`/projects/${id}/databases`}>New database</a>}
    >
      {list.length === 0 ? (
        <Empty
          title="No databases yet"
          command={`svc db create orders --engine postgresql --project ${id}`}
          action={mayActAs('developer', id) && <a href={`/projects/${id}/databases`}>Create a database</a>}
        >
          PostgreSQL, MariaDB and Redis with daily backups, and a connection string to copy.
        </Empty>
      ) : (
        <DatabaseTable databases={list} />
      )}
    </Section>
  );
}

export function DatabaseTable({ databases }: { databases: readonly ResultOf<typeof DATABASE_FIELDS>[] }) {
  return (
    <Table label="Databases" head={['Name', 'Status', 'Engine', 'Storage']}>
      {databases.map((database) => (
        <tr key={database.id}>
          <th scope="row">
            <a href={`/databases/${database.id}`}>{database.name}</a>
          </th>
          <td>
            <Status value={database.status} title={database.status_reason} />
          </td>
          <td>
            {database.engine} {database.engine_version}
          </td>
          <td>{database.storage_gb} GB</td>
        </tr>
      ))}
    </Table>
  );
}
