// An observer: its response times, and its incidents one after the other.
import { useMemo, useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { CatalogName } from '../../parts/catalog_name';
import { Chart } from '../../parts/chart';
import { Confirm } from '../../parts/dialog';
import { Problem } from '../../parts/form';
import { type Fact, Facts, Page, Section, Waiting } from '../../parts/page';
import { Status, StatusReason } from '../../parts/status';
import { Ago, durationText, secondsText } from '../../parts/time';
import { MetricRule } from './metric_rule';
import { navigate } from '../../router';
import { mayActAs } from '../../session';
import { percentText } from './list';
import { Address } from '../../parts/table';
import { ObserverNotifiers } from './notifiers';
import { reversalText } from '../../parts/reversal';
import { undoOfDelete } from '../../parts/undo';

const OBSERVER = graphql(`
  query Observer($id: ID!) {
    getObserver(id: $id) {
      id
      project_id
      name
      type
      enabled
      status
      interval_seconds
      failure_threshold
      recovery_threshold
      uptime_percent_30d
      notifier_ids
      uptime {
        check
        target
        method
      }
      metric {
        resource_type
        resource_id
        metric
        operator
        threshold
        window_seconds
      }
    }
    listObserverIncidents(id: $id, limit: 50) {
      data {
        id
        status
        cause
        started_at
        resolved_at
        notifications {
          notifier_id
          status
        }
      }
    }
    listObserverResults(id: $id, limit: 100) {
      data {
        id
        checked_at
        status
        region
        response_time_ms
        status_code
        value
        error
      }
    }
  }
`);
const CHECK = graphql(`
  mutation CheckObserver($id: ID!) {
    checkObserver(id: $id) {
      id
    }
  }
`);
const ENABLE = graphql(`
  mutation EnableObserver($id: ID!, $input: UpdateObserverInput!) {
    updateObserver(id: $id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteObserver($id: ID!) {
    deleteObserver(id: $id)
  }
`);

type Answer = ResultOf<typeof OBSERVER>;
type Observer = Answer['getObserver'];
type Incident = Answer['listObserverIncidents']['data'][number];
type Result = Answer['listObserverResults']['data'][number];

const POLL_MS = 15_000;

export function ObserverPage({ id }: { id: string }) {
  const { data, error, reload } = useQuery(OBSERVER, { id }, POLL_MS);
  const observer = data?.getObserver;
  const mayChange = mayActAs('developer', observer?.project_id);
  return (
    <Page
      title={observer?.name ?? 'Observer'}
      beside={observer && <Status value={observer.status} />}
      trail={observer ? [{ href: `/projects/${observer.project_id}/observers`, label: 'Observers' }] : []}
      actions={observer && mayChange && <Actions observer={observer} reload={reload} />}
      projectId={observer?.project_id}
      command={`svc api listObserverIncidents ${id}`}
    >
      {(!data || !observer) && <Waiting error={error} rows={6} />}
      {data && observer && (
        <>
          <Facts facts={factsOf(observer)} />
          <Checks results={data.listObserverResults.data} isMetric={observer.type === 'metric'} />
          <ObserverNotifiers observer={observer} reload={reload} />
          <Timeline incidents={data.listObserverIncidents.data} />
        </>
      )}
    </Page>
  );
}

function factsOf({ uptime, metric, ...observer }: Observer): Fact[] {
  return [
    [
      'What',
      uptime ? (
        <>
          {uptime.method} <Address url={uptime.target} />
        </>
      ) : (
        metric && <MetricRule projectId={observer.project_id} {...metric} />
      ),
      'double',
    ],
    ['Uptime in 30 days', percentText(observer.uptime_percent_30d)],
    ['Interval', secondsText(observer.interval_seconds)],
    ['An incident opens after', inARow(observer.failure_threshold, 'failure', 'failures')],
    ['It is resolved after', inARow(observer.recovery_threshold, 'success', 'successes')],
  ];
}

function inARow(count: number, one: string, several: string): string {
  return count === 1 ? `1 ${one}` : `${count} ${several} in a row`;
}

function Checks({ results, isMetric }: { results: readonly Result[]; isMetric: boolean }) {
  const series = useMemo(() => {
    const valued = results.map((one) => ({ ...one, value: isMetric ? one.value : one.response_time_ms }));
    const regions = [...new Set(results.map(({ region }) => region))];
    return regions.map((region) => ({
      label: region,
      points: valued
        .filter((one) => one.region === region && one.value !== null)
        .map(({ checked_at, value }) => ({ timestamp: checked_at, value: value as number }))
        .reverse(),
    }));
  }, [results, isMetric]);
  const [last, first] = [results[0], results.at(-1)];
  if (!last || !first) return <p class="faint">No checks yet.</p>;
  const title = isMetric ? 'Value' : 'Response time';
  return (
    <Section title={title}>
      <Chart title={title} unit={isMetric ? '' : 'ms'} series={series} from={first.checked_at} to={last.checked_at} />
      <p>
        <StatusReason value={last.status} reason={last.error}>
          checked <Ago time={last.checked_at} /> from <CatalogName of="region" id={last.region} />
          {last.status_code !== null && `, HTTP ${last.status_code}`}
        </StatusReason>
      </p>
    </Section>
  );
}

function Timeline({ incidents }: { incidents: readonly Incident[] }) {
  return (
    <Section title="Incidents">
      {incidents.length === 0 && <p class="faint">No incidents yet.</p>}
      <ol class="timeline">
        {incidents.map((incident) => (
          <li key={incident.id}>
            <Status value={incident.status} /> <Ago time={incident.started_at} />,{' '}
            {incident.resolved_at ? 'for' : 'until now'} {durationText(incident.started_at, incident.resolved_at)}
            <br />
            {incident.cause}
            <br />
            <small class="faint">{toldText(incident)}</small>
          </li>
        ))}
      </ol>
    </Section>
  );
}

function toldText({ notifications }: Incident): string {
  if (!notifications.length) return 'No notifications were sent.';
  const counts = new Map<string, number>();
  for (const { status } of notifications) counts.set(status, (counts.get(status) ?? 0) + 1);
  return `Notifications: ${[...counts].map(([status, count]) => `${count} ${status}`).join(', ')}.`;
}

function Actions({ observer, reload }: { observer: Observer; reload(): Promise<void> }) {
  const [asks, setAsks] = useState(false);
  const { id, name, project_id } = observer;
  const check = useAction(async () => {
    await request(CHECK, { id });
    await reload();
  });
  const enable = useAction(async () => {
    await request(ENABLE, { id, input: { enabled: !observer.enabled } });
    await reload();
  });
  const remove = async (): Promise<void> => {
    await request(DELETE, { id });
    navigate(`/projects/${project_id}/observers`);
  };
  return (
    <>
      <button type="button" class="quiet" aria-disabled={check.isRunning} onClick={() => void check.run()}>
        Check now
      </button>
      <button type="button" class="quiet" onClick={() => void enable.run()}>
        {observer.enabled ? 'Pause' : 'Resume'}
      </button>
      <button type="button" class="quiet" onClick={() => setAsks(true)}>
        Delete
      </button>
      <Problem error={check.error ?? enable.error} />
      {asks && (
        <Confirm
          title={`Delete ${name}?`}
          verb="Delete"
          work={remove}
          done={`The observer ${name} was deleted.`}
          findUndo={() => undoOfDelete(project_id, id, () => navigate(`/observers/${id}`))}
          onClose={() => setAsks(false)}
        >
          Its incidents and its measurements go with it. {reversalText('bin', project_id)}
        </Confirm>
      )}
    </>
  );
}
