// What watches the applications of a project, and the addresses of others.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Field, useFields } from '../../parts/form';
import { Table } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { navigate } from '../../router';
import { NewSection, ProjectList } from '../project_list';

const MONITORS = graphql(`
  query Monitors($id: ID!, $cursor: String) {
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
  mutation CreateMonitor($project_id: ID!, $input: CreateObserverInput!) {
    createObserver(project_id: $project_id, input: $input) {
      id
    }
  }
`);

const FIELDS = ['name', 'target', 'interval_seconds', 'failure_threshold'];

export function Monitors({ id }: { id: string }) {
  return (
    <ProjectList
      id={id}
      title="Monitors"
      query={MONITORS}
      listOf={(data) => data.listObservers}
      command={`svc api listObservers --project ${id}`}
      empty={{
        title: 'Nothing is watched yet',
        text:
          'A monitor asks an address again and again, and tells its notifiers when it does not answer as it ' +
          'should.',
        command:
          'svc api createObserver --field name=Shop --field type=uptime ' +
          `--field uptime.target=https://shop.example.com/ --project ${id}`,
      }}
      table={(monitors) => (
        <Table label="Monitors" head={['Name', 'Status', 'What', 'Up in 30 days', 'Last check']}>
          {monitors.map((monitor) => (
            <tr key={monitor.id}>
              <th scope="row">
                <a href={`/monitors/${monitor.id}`}>{monitor.name}</a>
              </th>
              <td>
                <Status value={monitor.status} />
              </td>
              <td>
                <span class="clip">{monitor.uptime?.target ?? monitor.metric?.metric}</span>
              </td>
              <td>{percentText(monitor.uptime_percent_30d)}</td>
              <td>
                <Ago time={monitor.last_result?.checked_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
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
    navigate(`/monitors/${createObserver.id}`);
  });
  const number = { type: 'number', required: true, min: 1 };
  return (
    <NewSection title="New monitor" action={action} verb="Create monitor" fields={FIELDS}>
      <Field label="Name" {...fields.of('name', action)} required placeholder="Shop" />
      <Field label="Address" {...fields.of('target', action)} required placeholder="https://shop.example.com/" />
      <Field label="Seconds between checks" {...fields.of('interval_seconds', action)} {...number} />
      <Field label="Failures in a row that are an incident" {...fields.of('failure_threshold', action)} {...number} />
    </NewSection>
  );
}
