import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Form, Problem } from '../../parts/form';
import { showNotice } from '../../parts/notices';
import { Section, Table, Waiting } from '../../parts/page';
import { Status, StatusReason } from '../../parts/status';
import { Ago } from '../../parts/time';
import { Clip } from '../../parts/table';
import { ApplicationFrame, type ApplicationData, type Shown } from './frame';

const INSTANCES = graphql(`
  query Instances($id: ID!) {
    listApplicationInstances(id: $id, limit: 100) {
      data {
        id
        process_type
        status
        status_reason
        restart_count
        cpu_percent
        memory_mb
        started_at
      }
    }
  }
`);
const SCALE = graphql(`
  mutation Scale($id: ID!, $process_id: ID!, $input: ScaleProcessInput!) {
    scaleProcess(id: $id, process_id: $process_id, input: $input) {
      id
    }
  }
`);

export function Processes({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Processes" command={`svc ps --app ${id}`}>
      {(shown) => (
        <>
          <Section title="Process types">
            <ul class="rows">
              {shown.application.processes.map((process) => (
                <Scale key={process.id} process={process} shown={shown} />
              ))}
            </ul>
          </Section>
          <Instances shown={shown} />
        </>
      )}
    </ApplicationFrame>
  );
}

interface ScaleProps {
  process: ApplicationData['processes'][number];
  shown: Shown;
}

function Scale({ process, shown }: ScaleProps) {
  const { id } = shown.application;
  const [wanted, setWanted] = useState<string | null>(null);
  const text = wanted ?? String(process.instances);
  const isSame = text === String(process.instances);
  const action = useAction(async () => {
    if (isSame) return;
    const scale = async (instances: number): Promise<void> => {
      await request(SCALE, { id, process_id: process.id, input: { instances } });
      await shown.reload();
    };
    const before = process.instances;
    await scale(Number(wanted));
    setWanted(null);
    showNotice({ text: `${process.type} is scaled from ${before} to ${wanted}.`, undo: () => scale(before) });
  });
  return (
    <li class="row">
      <div>
        <strong>{process.type}</strong> <Status value={process.status} />
        <br />
        <Clip code text={process.effective_command ?? 'no command yet'} />
      </div>
      {shown.mayChange ? (
        <Form action={action} class="inline">
          <label>
            <span class="off-screen">Instances of {process.type}</span>
            <input
              type="number"
              min={0}
              step={1}
              required
              value={text}
              onInput={(event) => setWanted(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="quiet" aria-disabled={isSame}>
            Scale
          </button>
        </Form>
      ) : (
        <span>
          {process.running_instances} of {process.instances}
        </span>
      )}
      <Problem error={action.error} />
    </li>
  );
}

function Instances({ shown }: { shown: Shown }) {
  const { data, error, reload } = useQuery(INSTANCES, { id: shown.application.id });
  const list = data?.listApplicationInstances.data;
  useMoving(Boolean(list), reload);
  return (
    <Section title="Instances">
      {!list && <Waiting error={error} />}
      {list?.length === 0 && <p class="faint">No running instances.</p>}
      {list && list.length > 0 && (
        <Table label="Instances" head={['Process', 'Status', 'CPU', 'Memory', 'Restarts', 'Started']}>
          {list.map((instance) => (
            <tr key={instance.id}>
              <th scope="row">{instance.process_type}</th>
              <td>
                <StatusReason value={instance.status} reason={instance.status_reason} />
              </td>
              <td>{instance.cpu_percent === null ? '–' : `${instance.cpu_percent} %`}</td>
              <td>{instance.memory_mb === null ? '–' : `${instance.memory_mb} MB`}</td>
              <td>{instance.restart_count}</td>
              <td>
                <Ago time={instance.started_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
