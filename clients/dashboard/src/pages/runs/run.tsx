// A run with its log.
import { useRef, useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useStream } from '../../api/follow';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { CatalogName } from '../../parts/catalog_name';
import { Problem } from '../../parts/form';
import { LogLines, LogView } from '../../parts/log_view';
import { useWrapping, WrapSwitch } from '../../parts/log_wrap';
import { type Fact, Facts, Section, Waiting } from '../../parts/page';
import { ResourceLink } from '../../parts/resource_name';
import { Status, StatusReason } from '../../parts/status';
import { Ago, durationText, secondsText } from '../../parts/time';
import { ApplicationFrame, type Shown } from '../application/frame';
import { isUnfinished, StartedBy } from './list';
import { commandText } from './shell';

export const RUN = graphql(`
  query Run($id: ID!, $run_id: ID!) {
    getRun(id: $id, run_id: $run_id) {
      id
      command
      process_type
      instance_id
      application_type
      deployment_id
      env
      timeout_seconds
      tty
      status
      status_reason
      exit_code
      signal
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
  }
`);
const LOG = graphql(`
  subscription RunLog($id: ID!, $run_id: ID!, $after: String) {
    followRunLogs(id: $id, run_id: $run_id, after: $after) {
      position
      timestamp
      level
      source
      message
    }
  }
`);
const CANCEL = graphql(`
  mutation CancelRun($id: ID!, $run_id: ID!) {
    cancelRun(id: $id, run_id: $run_id) {
      id
    }
  }
`);

type RunData = ResultOf<typeof RUN>['getRun'];

export function RunPage({ id, run_id }: { id: string; run_id: string }) {
  return (
    <ApplicationFrame id={id} section="Run" command={`svc api listRunLogs ${id} ${run_id}`}>
      {(shown) => <One key={run_id} shown={shown} runId={run_id} />}
    </ApplicationFrame>
  );
}

function One({ shown, runId }: { shown: Shown; runId: string }) {
  const { id } = shown.application;
  const { data, error, reload } = useQuery(RUN, { id, run_id: runId });
  const run = data?.getRun;
  const isOn = isUnfinished(run?.status);
  useMoving(isOn, reload);
  const cancel = useAction(async () => {
    await request(CANCEL, { id, run_id: runId });
    await reload();
  });
  if (!run) return <Waiting error={error} rows={6} />;
  const actions = shown.mayChange && isOn && (
    <>
      <button type="button" class="quiet" aria-disabled={cancel.isRunning} onClick={() => void cancel.run()}>
        Cancel
      </button>
      {run.tty && (
        <a role="button" href={`/applications/${id}/runs/${runId}/terminal`}>
          Open the terminal
        </a>
      )}
    </>
  );
  return (
    <Section title="Run" actions={actions}>
      <Problem error={cancel.error} />
      <p class="headline" aria-live="polite">
        <StatusReason value={run.status}>{durationText(run.started_at, run.finished_at)}</StatusReason>
      </p>
      {run.status_reason && <p class="notice bad">{run.status_reason}</p>}
      <Facts facts={factsOf(shown.application, run)} />
      <Log id={id} runId={runId} isOver={!isOn} />
    </Section>
  );
}

function factsOf({ id, project_id: projectId }: Shown['application'], run: RunData): Fact[] {
  const exit = run.exit_code === null ? null : `${run.exit_code}${run.signal ? ` (${run.signal})` : ''}`;
  return [
    ['Command', <code>{commandText(run.command)}</code>, 'double'],
    ['Exit code', exit],
    ['Size', <CatalogName of="size" id={run.application_type} />],
    ['Process type', run.process_type],
    ...(run.instance_id ? [['Within the instance', <code>{run.instance_id}</code>] as const] : []),
    ['Time limit', secondsText(run.timeout_seconds)],
    ...(run.env.length ? [['Additional variables', run.env.join(', ')] as const] : []),
    [
      'Release',
      <ResourceLink
        projectId={projectId}
        id={run.deployment_id}
        name="Release of the deployment"
        href={`/applications/${id}/deployments/${run.deployment_id}`}
      />,
    ],
    ['Started by', <StartedBy projectId={projectId} run={run} />],
    ['Created', <Ago time={run.created_at} />],
  ];
}

function Log({ id, runId, isOver }: { id: string; runId: string; isOver: boolean }) {
  const lines = useRef(new LogLines()).current;
  const [version, setVersion] = useState(0);
  const { wraps, wrap } = useWrapping();
  const state = useStream(LOG, { id, run_id: runId }, (rows) => {
    lines.append(rows.map(({ source, ...line }) => ({ ...line, origin: source })));
    setVersion((before) => before + 1);
  });
  return (
    <>
      <header class="log-head">
        <h3>Log</h3>
        {isOver ? <span class="faint">The run has finished.</span> : <Status value={state} />}
        <div class="log-tools">
          <WrapSwitch {...{ wraps, wrap }} />
        </div>
      </header>
      <LogView label="Log of the run" {...{ lines, version, wraps }} empty="No lines yet." />
    </>
  );
}
