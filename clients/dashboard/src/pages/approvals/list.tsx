// Calls of a project that destroy and wait for an owner, those of the last time, and whose calls have to wait.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Form, Problem, Select, Submit } from '../../parts/form';
import { showNotice } from '../../parts/notices';
import { Empty, Page, Section, Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { Status } from '../../parts/status';
import { RowsTable } from '../../parts/table';
import { Ago } from '../../parts/time';
import { mayActAs } from '../../session';
import { projectFlag } from '../../parts/command';

const APPROVALS = graphql(`
  query Approvals($id: ID!, $cursor: String) {
    getProject(id: $id) {
      approval_required_for
    }
    listApprovals(project_id: $id, limit: 50, cursor: $cursor) {
      data {
        id
        status
        summary
        resource {
          name
        }
        requested_by {
          name
        }
        created_at
      }
      next_cursor
    }
  }
`);
const REQUIRE = graphql(`
  mutation RequireApprovals($id: ID!, $approval_required_for: ApprovalRequirement!) {
    updateProject(id: $id, input: { approval_required_for: $approval_required_for }) {
      approval_required_for
    }
  }
`);

type Requirement = ResultOf<typeof APPROVALS>['getProject']['approval_required_for'];

const REQUIREMENTS: { value: Requirement; label: string }[] = [
  { value: 'none', label: 'No calls' },
  { value: 'keys', label: 'Calls of keys and programs' },
  { value: 'all', label: 'All calls, those of people in the dashboard too' },
];
/** A call is repeated and decided about elsewhere. */
const POLL_MS = 10_000;

export function Approvals({ id }: { id: string }) {
  const [cursor, go] = useState<string | null>(null);
  const { data, error, reload } = useQuery(APPROVALS, { id, cursor }, POLL_MS);
  return (
    <Page title="Approvals" projectId={id} command={`svc approve ls${projectFlag(id)}`}>
      <p class="faint">
        An owner approves calls that delete, or overwrite what cannot be made again, before they are made.
      </p>
      {!data && <Waiting error={error} />}
      {data && mayActAs('owner', id) && (
        <Requirements id={id} now={data.getProject.approval_required_for} reload={reload} />
      )}
      {data && <Calls id={id} rows={data.listApprovals.data} />}
      {data && <Paging cursor={cursor} next={data.listApprovals.next_cursor} go={go} />}
    </Page>
  );
}

function Calls({ id, rows }: { id: string; rows: ResultOf<typeof APPROVALS>['listApprovals']['data'] }) {
  if (!rows.length) return <Empty title="No calls yet">Calls that need an approval stand here, with who asks.</Empty>;
  return (
    <RowsTable
      label="Calls"
      rows={rows}
      keyOf={(row) => row.id}
      columns={{
        Call: (row) => <a href={`/projects/${id}/approvals/${row.id}`}>{row.summary}</a>,
        Resource: (row) => row.resource?.name ?? '–',
        'Asked by': (row) => row.requested_by.name,
        Asked: (row) => <Ago time={row.created_at} />,
        Status: (row) => <Status value={row.status} />,
      }}
    />
  );
}

function Requirements({ id, now, reload }: { id: string; now: Requirement; reload(): Promise<void> }) {
  const [value, setValue] = useState<Requirement>(now);
  const action = useAction(async () => {
    await request(REQUIRE, { id, approval_required_for: value });
    showNotice({ text: 'The required approvals were changed.' });
    await reload();
  });
  return (
    <Section title="What needs an approval">
      <Form action={action} class="inline form-line">
        <Select
          label="Calls that destroy"
          name="approval_required_for"
          value={value}
          onChange={(chosen) => setValue(chosen as Requirement)}
          options={REQUIREMENTS}
          error={action.error}
          hint="To require less needs an approval itself."
        />
        <Submit action={action}>Save</Submit>
        <Problem error={action.error} fields={['approval_required_for']} />
      </Form>
    </Section>
  );
}
