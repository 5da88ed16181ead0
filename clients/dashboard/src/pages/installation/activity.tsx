// What happened in all projects and in the installation itself, and its export.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Field, Problem, useFields } from '../../parts/form';
import { Section, Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { Status } from '../../parts/status';
import { RowsTable } from '../../parts/table';
import { Ago } from '../../parts/time';
import { kindWords, words } from '../../parts/words';
import { OperatorPage } from './frame';

const ACTIVITY = graphql(`
  query InstallationActivity($filter: InstallationActivityFilter, $cursor: String) {
    listInstallationActivity(filter: $filter, limit: 50, cursor: $cursor) {
      data {
        id
        action
        outcome
        actor {
          id
          name
        }
        project {
          id
          name
        }
        resource_type
        resource_id
        resource_name
        changed_fields
        created_at
      }
      next_cursor
    }
  }
`);
const EXPORT = graphql(`
  mutation ExportInstallationActivity($format: ActivityExportFormat!, $filter: InstallationActivityFilter) {
    exportInstallationActivity(format: $format, filter: $filter) {
      url
    }
  }
`);

type Entry = ResultOf<typeof ACTIVITY>['listInstallationActivity']['data'][number];

interface Filter {
  person: string | null;
  action: string | null;
  since: string | null;
  until: string | null;
}

const ALL: Filter = { person: null, action: null, since: null, until: null };

export function AllActivityPage() {
  const [filter, setFilter] = useState(ALL);
  return (
    <OperatorPage title="All activity">
      <Filters search={setFilter} />
      <Entries key={JSON.stringify(filter)} filter={filter} />
      <Export filter={filter} />
    </OperatorPage>
  );
}

function Filters({ search }: { search(filter: Filter): void }) {
  const fields = useFields({ person: '', action: '', since: '', until: '' });
  const { person, action, since, until } = fields.values;
  const instant = (text: string): string | null => (text ? new Date(text).toISOString() : null);
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        search({
          ...{ person: person.trim() || null, action: action.trim() || null },
          ...{ since: instant(since), until: instant(until) },
        });
      }}
    >
      <Field {...fields.of('person')} label="Person" placeholder="name or e-mail address" />
      <Field {...fields.of('action')} label="Action" placeholder="installation." />
      <Field {...fields.of('since')} label="From" type="datetime-local" />
      <Field {...fields.of('until')} label="To" type="datetime-local" />
      <button type="submit">Show</button>
    </form>
  );
}

function Entries({ filter }: { filter: Filter }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error } = useQuery(ACTIVITY, { filter, cursor });
  if (!data) return error ? <Problem error={error} /> : <Waiting rows={10} />;
  const { data: entries, next_cursor } = data.listInstallationActivity;
  if (!entries.length) return <p class="faint">No entries match.</p>;
  return (
    <>
      <RowsTable<Entry>
        label="Activity of the installation"
        rows={entries}
        keyOf={({ id }) => id}
        columns={{
          What: ({ action, outcome, changed_fields }) => (
            <>
              {words(action)} {outcome === 'refused' && <Status value="refused" />}
              {changed_fields.length > 0 && <small class="reason">{changed_fields.join(', ')}</small>}
            </>
          ),
          Resource: ({ resource_type, resource_id, resource_name }) => (
            <>
              <span class="clip">{resource_name ?? resource_id}</span>
              <small class="reason">{kindWords(resource_type)}</small>
            </>
          ),
          Project: ({ project }) => <span class="clip">{project ? (project.name ?? project.id) : '–'}</span>,
          Who: ({ actor }) => <span class="clip">{actor.name}</span>,
          When: ({ created_at }) => <Ago time={created_at} />,
        }}
      />
      <Paging cursor={cursor} next={next_cursor} go={setCursor} />
    </>
  );
}

function Export({ filter }: { filter: Filter }) {
  const action = useAction(async (format: 'csv' | 'jsonl') => {
    const { exportInstallationActivity } = await request(EXPORT, { format, filter });
    location.assign(exportInstallationActivity.url);
  });
  return (
    <Section title="Export">
      <p class="faint">
        All entries that match, oldest first. On the machine, <code>platform audit</code> prints the same. An export is
        an entry of its own.
      </p>
      <p class="actions">
        <button type="button" class="quiet" onClick={() => void action.run('csv')}>
          Download CSV
        </button>
        <button type="button" class="quiet" onClick={() => void action.run('jsonl')}>
          Download JSON lines
        </button>
      </p>
      <Problem error={action.error} />
    </Section>
  );
}
