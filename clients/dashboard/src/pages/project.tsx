// The home of a project: its applications and databases, with their states and what was deployed last.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../api/graphql';
import { useMoving } from '../api/use_moving';
import { useQuery } from '../api/use_query';
import { ActivityTable, useActivity } from '../parts/activity';
import {
  APPLICATION_FACTS,
  Attention,
  DATABASE_FACTS,
  troublesOfApplication,
  troublesOfDatabase,
  troublesOfVolume,
  VOLUME_FACTS,
} from '../parts/attention';
import { CatalogName } from '../parts/catalog_name';
import { DiskUsed } from '../parts/disk';
import { HOUR_FIELDS, HourRequests, HourTime } from '../parts/last_hour';
import { Empty, Page, Section, Table, Waiting } from '../parts/page';
import { Paging } from '../parts/paging';
import { isUnsettled, Status } from '../parts/status';
import { Address } from '../parts/table';
import { Ago } from '../parts/time';
import { mayActAs } from '../session';
import { projectFlag } from '../parts/command';
import { ProjectDanger } from './project_danger';

/** What the table of databases shows. */
export const DATABASE_FIELDS = graphql(
  `
    fragment DatabaseFields on Database {
      ...DatabaseFacts
      engine
      engine_version
      status_reason
    }
  `,
  [DATABASE_FACTS],
);
const HOME = graphql(
  `
    query ProjectHome($id: ID!, $applications: String, $databases: String, $parts: Int!) {
      getProject(id: $id) {
        id
        name
        description
        deletion_protection
      }
      listApplications(project_id: $id, limit: 50, cursor: $applications, sort: "name") {
        data {
          ...ApplicationFacts
          url
          default_hostname
          latest_deployment {
            created_at
            commit_message
            commit_author
            created_by {
              name
            }
          }
          processes(limit: 5) {
            instances
            running_instances
          }
          metrics(metrics: [requests, responses_5xx, response_time_p95_ms], resolution_seconds: 60) {
            ...HourFields
          }
        }
        next_cursor
      }
      listApprovals(project_id: $id, status: pending, limit: 50) {
        data {
          id
        }
      }
      listVolumes(project_id: $id, limit: 50) {
        data {
          ...VolumeFacts
        }
      }
      listDatabases(project_id: $id, limit: 50, cursor: $databases, sort: "name") {
        data {
          ...DatabaseFields
        }
        next_cursor
      }
    }
  `,
  [DATABASE_FIELDS, APPLICATION_FACTS, VOLUME_FACTS, HOUR_FIELDS],
);
/** So many domains and schedules of each application are looked at here: its overview looks at all. */
const PARTS = 5;

type Home = ResultOf<typeof HOME>;

export function ProjectHome({ id }: { id: string }) {
  const [applications, goInApplications] = useState<string | null>(null);
  const [databases, goInDatabases] = useState<string | null>(null);
  const { data, error, reload } = useQuery(HOME, { id, applications, databases, parts: PARTS });
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
      actions={actions}
      projectId={id}
      command={`svc apps${projectFlag(id)}`}
    >
      {!data && <Waiting error={error} rows={6} />}
      {data && <Wellness data={data} id={id} />}
      {data && <Applications data={data} id={id} />}
      {data && <Paging cursor={applications} next={data.listApplications.next_cursor} go={goInApplications} />}
      {data && <Databases data={data} id={id} />}
      {data && <Paging cursor={databases} next={data.listDatabases.next_cursor} go={goInDatabases} />}
      {data && (
        <Section title="Recent activity">
          <ActivityTable projectId={id} entries={entries && entries.slice(0, 8)} />
        </Section>
      )}
      {data && mayActAs('owner', id) && <ProjectDanger project={data.getProject} reload={reload} />}
    </Page>
  );
}

function Wellness({ data, id }: { data: Home; id: string }) {
  const { listApplications: applications, listDatabases: databases, listVolumes: volumes } = data;
  const waiting = data.listApprovals.data.length;
  if (!applications.data.length && !databases.data.length && !waiting) return null;
  const troubles = [
    ...(waiting ? [{ text: waitingText(waiting), href: `/projects/${id}/approvals` }] : []),
    ...applications.data.flatMap(troublesOfApplication),
    ...databases.data.flatMap(troublesOfDatabase),
    ...volumes.data.flatMap((volume) => troublesOfVolume(volume, id)),
  ];
  return <Attention troubles={troubles} well="Nothing needs attention." />;
}

function waitingText(count: number): string {
  return count === 1 ? 'A call waits for an approval.' : `${count} calls wait for an approval.`;
}

function Applications({ data, id }: { data: Home; id: string }) {
  const list = data.listApplications;
  return (
    <Section title="Applications">
      {list.data.length === 0 ? (
        <Empty
          title="No applications yet"
          command={`svc up --create${projectFlag(id)}`}
          action={
            mayActAs('developer', id) && (
              <a role="button" href={`/projects/${id}/new`}>
                Deploy the first application
              </a>
            )
          }
        >
          Deploy a folder of this computer, a Git repository, an image or a preset. It gets an address of its own at
          once.
        </Empty>
      ) : (
        <Table label="Applications" head={['Name', 'Status', 'Requests, last hour', 'Slowest p95', 'Last deployment']}>
          {list.data.map((application) => (
            <tr key={application.id}>
              <th scope="row">
                <a href={`/applications/${application.id}`}>{application.name}</a>
                <br />
                <small>
                  <Address
                    url={application.status === 'running' ? application.url : null}
                    shown={hostOf(application)}
                  />
                </small>
              </th>
              <td>
                <Status value={application.status} title={application.status_reason} />
                <br />
                <small class="faint">{instancesText(application.processes)}</small>
              </td>
              <td>
                <HourRequests hour={application.metrics} />
              </td>
              <td>
                <HourTime hour={application.metrics} />
              </td>
              <td>
                <LastDeployment application={application} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

type ListedApplication = Home['listApplications']['data'][number];

function hostOf({ url, status, default_hostname }: ListedApplication): string {
  return url && status === 'running' ? new URL(url).host : default_hostname;
}

export function instancesText(processes: ListedApplication['processes']): string {
  const count = (field: 'instances' | 'running_instances'): number =>
    processes.reduce((all, one) => all + one[field], 0);
  return `${count('running_instances')} of ${count('instances')} instances`;
}

function LastDeployment({ application }: { application: ListedApplication }) {
  const last = application.latest_deployment;
  if (!last) return <span class="faint">never</span>;
  const author = last.commit_author?.replace(/\s*<.*>$/, '') || last.created_by.name;
  return (
    <>
      <a class="plain-link" href={`/applications/${application.id}/deployments/${last.id}`}>
        #{last.number} <Status value={last.status} /> <Ago time={last.created_at} />
      </a>
      <br />
      <small class="clip faint">
        {[last.commit_message?.split('\n')[0], author && `by ${author}`].filter(Boolean).join(' · ')}
      </small>
    </>
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
          command={`svc db create orders --engine postgresql${projectFlag(id)}`}
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

export function Engine({ engine, engine_version }: { engine: string; engine_version: string }) {
  return (
    <>
      <CatalogName of="engine" id={engine} /> {engine_version}
    </>
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
            <Engine {...database} />
          </td>
          <td>
            <DiskUsed name={database.name} usedBytes={database.storage_used_bytes} sizeGb={database.storage_gb} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
