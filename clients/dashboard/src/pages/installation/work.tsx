// The processes of the installation, and what they do again and again: when it was done last, and what failed.
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Section, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { RowsTable } from '../../parts/table';
import { Ago, bytesText, secondsText } from '../../parts/time';
import { words } from '../../parts/words';
import { OperatorPage } from './frame';

const PROCESSES = graphql(`
  query InstallationProcesses {
    installationProcesses {
      waiting_seconds
      processes {
        machine
        role
        pid
        version
        started_at
        memory_bytes
        reported_at
        is_silent
        work {
          name
          every_seconds
          runs
          failures
          last_run_at
          last_success_at
          last_error
        }
      }
      tasks {
        name
        last_run_at
        next_run_at
        last_error
      }
    }
  }
`);

type Processes = ResultOf<typeof PROCESSES>['installationProcesses'];
type Process = Processes['processes'][number];
type Work = Process['work'][number];
type Task = Processes['tasks'][number];

const EVERY_MS = 15_000;
const LATE_SECONDS = 60;

export function WorkPage() {
  const { data, error } = useQuery(PROCESSES, {}, EVERY_MS);
  const found = data?.installationProcesses;
  return (
    <OperatorPage title="Background work">
      {!found && <Waiting error={error} rows={10} />}
      {found && (
        <>
          {found.waiting_seconds > LATE_SECONDS && (
            <p class="notice bad">
              A task has waited for {secondsText(Math.round(found.waiting_seconds))}: no worker takes it. See that one
              runs.
            </p>
          )}
          {found.processes.map((process) => (
            <OneProcess key={`${process.machine} ${process.pid}`} process={process} />
          ))}
          {found.tasks.length > 0 && <Tasks tasks={found.tasks} />}
        </>
      )}
    </OperatorPage>
  );
}

function OneProcess({ process }: { process: Process }) {
  const { machine, role, pid, version, started_at, memory_bytes, reported_at, is_silent, work } = process;
  const failing = work.filter(({ last_error }) => last_error !== null);
  const others = work.filter(({ last_error }) => last_error === null);
  return (
    <Section title={`${words(role)} ${pid} on ${machine}`}>
      <p>
        Version {version}, started <Ago time={started_at} />, {bytesText(memory_bytes)} of memory.
      </p>
      {is_silent && (
        <p class="notice bad">
          It has not reported since <Ago time={reported_at} />: it was killed, or the control database is out of its
          reach.
        </p>
      )}
      <RowsTable<Work>
        label={`Repeated work of ${role} ${pid}`}
        rows={[...failing, ...others]}
        keyOf={({ name }) => name}
        columns={{
          Work: ({ name, last_error }) => (
            <>
              {words(name)}
              {last_error && <small class="reason">{last_error}</small>}
            </>
          ),
          State: ({ last_error, last_run_at }) => (
            <Status value={last_error !== null ? 'failed' : last_run_at === null ? 'to_come' : 'ok'} />
          ),
          Every: ({ every_seconds }) =>
            every_seconds < 1 ? `${every_seconds * 1_000} ms` : secondsText(every_seconds),
          'Last run': ({ last_run_at }) => <Ago time={last_run_at} />,
          Runs: ({ runs }) => runs.toLocaleString('en'),
          Failures: ({ failures }) => failures.toLocaleString('en'),
        }}
      />
    </Section>
  );
}

function Tasks({ tasks }: { tasks: readonly Task[] }) {
  return (
    <Section title="Tasks of all workers">
      <p class="faint">Each is done by the worker that takes it first.</p>
      <RowsTable<Task>
        label="Tasks of all workers"
        rows={[...tasks].sort((one, other) => Number(other.last_error !== null) - Number(one.last_error !== null))}
        keyOf={({ name }) => name}
        columns={{
          Task: ({ name, last_error }) => (
            <>
              {words(name)}
              {last_error && <small class="reason">{last_error}</small>}
            </>
          ),
          State: ({ last_error, last_run_at }) => (
            <Status value={last_error !== null ? 'failed' : last_run_at === null ? 'to_come' : 'ok'} />
          ),
          'Last run': ({ last_run_at }) => <Ago time={last_run_at} />,
          'Next run': ({ next_run_at }) => <Ago time={next_run_at} />,
        }}
      />
    </Section>
  );
}
