// The observers of a project.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Field, useFields } from '../../parts/form';
import { Status } from '../../parts/status';
import { Address } from '../../parts/table';
import { Ago } from '../../parts/time';
import { MetricRule } from './metric_rule';
import { navigate } from '../../router';
import { NewSection, ProjectList } from '../project_list';
import { projectFlag } from '../../parts/command';

const OBSERVERS = graphql(`
  query Observers($id: ID!, $cursor: String) {
    listObservers(project_id: $id, limit: 50, cursor: $cursor, sort: "name") {
      data {
        id
        name
        type
        status
        uptime {
          target
        }
        metric {
          resource_type
          resource_id
          metric
          operator
          threshold
        }
        uptime_percent_30d
        last_result {
          checked_at
          response_time_ms
        }
      }
      next_cursor
    }
  }
`);
const CREATE = graphql(`
  mutation CreateObserver($project_id: ID!, $input: CreateObserverInput!) {
    createObserver(project_id: $project_id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteListedObserver($id: ID!) {
    deleteObserver(id: $id)
  }
`);

const FIELDS = ['name', 'target', 'interval_seconds', 'failure_threshold'];

export function Observers({ id }: { id: string }) {
  return (
    <ProjectList
      id={id}
      title="Observers"
      query={OBSERVERS}
      listOf={(data) => data.listObservers}
      command={`svc api listObservers${projectFlag(id)}`}
      empty={{
        title: 'No observers yet',
        text: 'An observer checks a URL at an interval, and sends messages through its notifiers when checks fail.',
        command:
          'svc api createObserver --field name=Shop --field type=uptime ' +
          `--field uptime.target=https://shop.example.com/${projectFlag(id)}`,
      }}
      hrefOf={({ id: one }) => `/observers/${one}`}
      columns={() => ({
        Status: ({ status }) => <Status value={status} />,
        Target: ({ uptime, metric }) =>
          uptime ? <Address url={uptime.target} /> : metric && <MetricRule projectId={id} {...metric} />,
        'Uptime in 30 days': (observer) => percentText(observer.uptime_percent_30d),
        'Last check': ({ last_result }) => <Ago time={last_result?.checked_at} />,
      })}
      deletion={{
        kind: 'observer',
        consequence: 'Its check results, incidents and notifiers go with it.',
        remove: (one) => request(DELETE, { id: one }),
      }}
    >
      <Create projectId={id} />
    </ProjectList>
  );
}

export function percentText(value: number | null): string {
  return value === null ? '–' : `${value.toFixed(2)} %`;
}

function Create({ projectId }: { projectId: string }) {
  const fields = useFields({ name: '', target: '', interval_seconds: '60', failure_threshold: '2' });
  const action = useAction(async () => {
    const { name, target, interval_seconds, failure_threshold } = fields.values;
    const numbers = { interval_seconds: Number(interval_seconds), failure_threshold: Number(failure_threshold) };
    const input = { name, type: 'uptime' as const, uptime: { target }, ...numbers };
    const { createObserver } = await request(CREATE, { project_id: projectId, input });
    navigate(`/observers/${createObserver.id}`);
  });
  const number = { type: 'number', required: true, min: 1 };
  return (
    <NewSection title="New observer" action={action} verb="Create observer" fields={FIELDS}>
      <Field label="Name" {...fields.of('name', action)} required placeholder="Shop" />
      <Field label="URL" {...fields.of('target', action)} required placeholder="https://shop.example.com/" />
      <Field label="Interval in seconds" {...fields.of('interval_seconds', action)} {...number} />
      <Field label="Failures in a row before an incident" {...fields.of('failure_threshold', action)} {...number} />
    </NewSection>
  );
}
