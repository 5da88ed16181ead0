// The runs of an application: commands that ran once, and those that run now.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf, type VariablesOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useQuery } from '../../api/use_query';
import { Select } from '../../parts/form';
import { Paging } from '../../parts/paging';
import { Empty, Section, Table, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago, durationText } from '../../parts/time';
import { address, setQuery } from '../../router';
import { ApplicationFrame, type Shown } from '../application/frame';
import { PendingVariables } from '../attachments/pending';
import { OpenShell } from './shell';

const RUNS = graphql(`
  query Runs($id: ID!, $cursor: String, $status: RunStatus) {
    listRuns(id: $id, limit: 20, cursor: $cursor, status: $status) {
      data {
        id
        command
        process_type
        tty
        status
        status_reason
        exit_code
        trigger {
          type
        }
        created_at
        started_at
        finished_at
      }
      next_cursor
    }
  }
`);
type RunRow = ResultOf<typeof RUNS>['listRuns']['data'][number];
type RunStatus = NonNullable<VariablesOf<typeof RUNS>['status']>;

const STATUSES: RunStatus[] = ['queued', 'starting', 'running', 'succeeded', 'failed', 'canceled', 'timed_out'];
const UNFINISHED: readonly string[] = ['queued', 'starting', 'running'];

export function isUnfinished(status: string | undefined): boolean {
  return status !== undefined && UNFINISHED.includes(status);
}

export function Runs({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Runs" command={`svc api listRuns ${id}`}>
      {(shown) => <List shown={shown} />}
    </ApplicationFrame>
  );
}

function List({ shown }: { shown: Shown }) {
  const { id } = shown.application;
  const [cursor, setCursor] = useState<string | null>(null);
  const status = (address.value.query.get('status') || null) as RunStatus | null;
  const { data, error, reload } = useQuery(RUNS, { id, cursor, status });
  const list = data?.listRuns;
  useMoving(Boolean(list?.data.some((run) => isUnfinished(run.status))), reload);
  const choose = (value: string): void => {
    setCursor(null);
    setQuery({ status: value });
  };
  return (
    <Section title="Runs" actions={shown.mayChange && <Starts shown={shown} />}>
      <PendingVariables shown={shown} note="Runs and shells have the variables of what runs now." />
      <Select
        label="Status"
        name="status"
        value={status ?? ''}
        onChange={choose}
        options={[
          { value: '', label: 'all' },
          ...STATUSES.map((one) => ({ value: one, label: one.replace('_', ' ') })),
        ]}
      />
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title={status ? 'No run has this status' : 'No runs yet'} command={`svc run --app ${id} -- env`}>
          A run is a command that runs once with the files and the environment of the application: a migration, a
          clean-up, a console. Runs are listed for 30 days.
        </Empty>
      )}
      {list && list.data.length > 0 && <RunTable id={id} runs={list.data} />}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
    </Section>
  );
}

function RunTable({ id, runs }: { id: string; runs: readonly RunRow[] }) {
  return (
    <Table label="Runs" head={['Command', 'Status', 'Exit code', 'Started', 'Duration', 'Started by']}>
      {runs.map((run) => (
        <tr key={run.id}>
          <th scope="row">
            <a href={`/applications/${id}/runs/${run.id}`}>
              <code class="clip">{run.command}</code>
            </a>
          </th>
          <td>
            <Status value={run.status} title={run.status_reason} />
          </td>
          <td>{run.exit_code ?? '–'}</td>
          <td>
            <Ago time={run.created_at} />
          </td>
          <td>{durationText(run.started_at, run.finished_at)}</td>
          <td>{run.trigger.type === 'api' ? 'a person' : run.trigger.type}</td>
        </tr>
      ))}
    </Table>
  );
}

function Starts({ shown }: { shown: Shown }) {
  const { id, current_deployment_id } = shown.application;
  if (!current_deployment_id) return <span class="faint">Deploy the application first: runs use its release.</span>;
  return (
    <>
      <OpenShell shown={shown} />
      <a role="button" href={`/applications/${id}/runs/new`}>
        New run
      </a>
    </>
  );
}
