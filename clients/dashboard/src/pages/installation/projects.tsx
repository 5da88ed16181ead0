// The projects of the installation: how large they are, and nothing of what is in them.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { RowsTable } from '../../parts/table';
import { Ago, bytesText } from '../../parts/time';
import { OperatorPage } from './frame';
import { SearchField } from './search';

const PROJECTS = graphql(`
  query InstallationProjects($search: String, $cursor: String) {
    listInstallationProjects(search: $search, limit: 50, cursor: $cursor) {
      data {
        id
        name
        owners
        members
        applications
        databases
        disk_bytes
        last_activity_at
        created_at
      }
      next_cursor
    }
  }
`);

type Project = ResultOf<typeof PROJECTS>['listInstallationProjects']['data'][number];

export function AllProjectsPage() {
  const [search, setSearch] = useState('');
  return (
    <OperatorPage title="All projects">
      <SearchField label="Name or id" search={setSearch} />
      <Projects key={search} search={search || null} />
    </OperatorPage>
  );
}

function Projects({ search }: { search: string | null }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error } = useQuery(PROJECTS, { search, cursor });
  if (!data) return <Waiting error={error} />;
  const { data: projects, next_cursor } = data.listInstallationProjects;
  if (!projects.length) return <p class="faint">No project matches.</p>;
  return (
    <>
      <RowsTable<Project>
        label="Projects of the installation"
        rows={projects}
        keyOf={({ id }) => id}
        columns={{
          Project: ({ name, id }) => (
            <>
              <span class="clip">{name}</span>
              <small class="reason">{id}</small>
            </>
          ),
          Owners: ({ owners }) => <span class="clip">{owners.join(', ') || '–'}</span>,
          Members: ({ members }) => members,
          Applications: ({ applications }) => applications,
          Databases: ({ databases }) => databases,
          Disk: ({ disk_bytes }) => bytesText(disk_bytes),
          'Last activity': ({ last_activity_at }) => <Ago time={last_activity_at} />,
          Since: ({ created_at }) => <Ago time={created_at} />,
        }}
      />
      <Paging cursor={cursor} next={next_cursor} go={setCursor} />
    </>
  );
}
