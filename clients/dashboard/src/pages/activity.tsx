// The activity of a project: live, or what was looked for.
import { useState } from 'preact/hooks';
import { graphql } from '../api/graphql';
import { useQuery } from '../api/use_query';
import { ACTIVITY_FIELDS, ActivityTable, useActivity } from '../parts/activity';
import { Field, Problem, useFields } from '../parts/form';
import { Page, Waiting } from '../parts/page';
import { Paging } from '../parts/paging';

const FOUND = graphql(
  `
    query FoundActivity(
      $id: ID!
      $cursor: String
      $resource_type: String
      $action: String
      $since: DateTime
      $until: DateTime
    ) {
      listProjectActivity(
        id: $id
        limit: 50
        cursor: $cursor
        resource_type: $resource_type
        action: $action
        since: $since
        until: $until
      ) {
        data {
          ...ActivityFields
        }
        next_cursor
      }
    }
  `,
  [ACTIVITY_FIELDS],
);

interface Wanted {
  resource_type: string | null;
  action: string | null;
  since: string | null;
  until: string | null;
}

export function ActivityPage({ id }: { id: string }) {
  const [wanted, setWanted] = useState<Wanted | null>(null);
  return (
    <Page title="Activity" projectId={id} command={`svc api listProjectActivity ${id}`}>
      <Filters search={setWanted} />
      {wanted ? <Found key={JSON.stringify(wanted)} id={id} wanted={wanted} /> : <Live id={id} />}
    </Page>
  );
}

function Filters({ search }: { search(wanted: Wanted | null): void }) {
  const fields = useFields({ resource_type: '', action: '', since: '', until: '' });
  const { resource_type, action, since, until } = fields.values;
  const submit = (): void => {
    const wanted = { resource_type: resource_type || null, action: action || null, ...period(since, until) };
    search(Object.values(wanted).some((value) => value !== null) ? wanted : null);
  };
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Field {...fields.of('resource_type')} label="Kind" placeholder="application" />
      <Field {...fields.of('action')} label="Action" placeholder="deployment.created" />
      <Field {...fields.of('since')} label="From" type="datetime-local" />
      <Field {...fields.of('until')} label="To" type="datetime-local" />
      <button type="submit">Show</button>
    </form>
  );
}

/** Times of this computer, as the API takes them. */
function period(since: string, until: string): Pick<Wanted, 'since' | 'until'> {
  const instant = (text: string): string | null => (text ? new Date(text).toISOString() : null);
  return { since: instant(since), until: instant(until) };
}

function Live({ id }: { id: string }) {
  return <ActivityTable projectId={id} entries={useActivity(id, () => {})} />;
}

function Found({ id, wanted }: { id: string; wanted: Wanted }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error } = useQuery(FOUND, { id, cursor, ...wanted });
  if (!data) return error ? <Problem error={error} /> : <Waiting error={null} />;
  const { data: entries, next_cursor } = data.listProjectActivity;
  if (!entries.length) return <p class="faint">No entries match.</p>;
  return (
    <>
      <ActivityTable projectId={id} entries={entries} />
      <Paging cursor={cursor} next={next_cursor} go={setCursor} />
    </>
  );
}
