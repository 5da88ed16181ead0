// The runs of an application: commands that ran once, and those that run now.
import { useState } from 'preact/hooks';
import { graphql, type ResultOf, type VariablesOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useQuery } from '../../api/use_query';
import { Select } from '../../parts/form';
import { Paging } from '../../parts/paging';
import { Empty, Section, Waiting } from '../../parts/page';
import { ResourceLink } from '../../parts/resource_name';
import { Status } from '../../parts/status';
import { Ago, durationText } from '../../parts/time';
import { address, setQuery } from '../../router';
import { Clip, RowsTable } from '../../parts/table';
import { ApplicationFrame, type Shown } from '../application/frame';
import { PendingVariables } from '../attachments/pending';
import { commandText, OpenShell } from './shell';
import { appFlags } from '../../parts/command';

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
          id
        }
        created_by {
          name
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
        <Empty
          title={status ? 'No run has this status' : 'No runs yet'}
          command={`svc run${appFlags(shown.application)} -- env`}
        >
          A run is a command that runs once with the files and the environment of the application: a migration, a
          clean-up, a console. Runs are listed for 30 days.
        </Empty>
      )}
      {list && list.data.length > 0 && <RunTable shown={shown} runs={list.data} />}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
    </Section>
  );
}

function RunTable({ shown, runs }: { shown: Shown; runs: readonly RunRow[] }) {
  const { id, project_id } = shown.application;
  return (
    <RowsTable
      label="Runs"
      rows={runs}
      keyOf={(run) => run.id}
      columns={{
        Command: (run) => (
          <a href={`/applications/${id}/runs/${run.id}`}>
            <Clip code text={commandText(run.command)} />
          </a>
        ),
        Status: ({ status, status_reason }) => <Status value={status} title={status_reason} />,
        'Exit code': ({ exit_code }) => exit_code ?? '–',
        Created: ({ created_at }) => <Ago time={created_at} />,
        Duration: ({ started_at, finished_at }) => durationText(started_at, finished_at),
        'Started by': (run) => <StartedBy projectId={project_id} run={run} />,
      }}
    />
  );
}

/** The person, or the schedule or deployment whose run it is. */
export function StartedBy({ projectId, run }: { projectId: string; run: Pick<RunRow, 'trigger' | 'created_by'> }) {
  const { type, id } = run.trigger;
  if (!id) return <>{run.created_by?.name ?? 'unknown'}</>;
  const kind = type === 'release' ? 'deployment' : type;
  return (
    <>
      {kind} <ResourceLink projectId={projectId} id={id} kind={kind} />
    </>
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
