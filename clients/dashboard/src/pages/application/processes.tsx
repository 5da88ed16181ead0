import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import { showNotice } from '../../parts/notices';
import { Section, Table, Waiting } from '../../parts/page';
import { inOrder, SIZE_FIELDS, sizeText, type Size } from '../../parts/sizes';
import { Status, StatusReason } from '../../parts/status';
import { Ago } from '../../parts/time';
import { Clip } from '../../parts/table';
import { OpenShell } from '../runs/shell';
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
const SIZES = graphql(
  `
    query ProcessSizes($id: ID!) {
      listApplicationTypes(limit: 100) {
        data {
          ...SizeFields
        }
      }
      listProcesses(id: $id, limit: 100) {
        data {
          id
          command
          application_type
        }
      }
    }
  `,
  [SIZE_FIELDS],
);
const UPDATE = graphql(`
  mutation UpdateProcess($id: ID!, $process_id: ID!, $input: UpdateProcessInput!) {
    updateProcess(id: $id, process_id: $process_id, input: $input) {
      id
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
    <ApplicationFrame id={id} section="Processes" command={(app) => `svc ps${app}`}>
      {(shown) => (
        <>
          <ProcessTypes shown={shown} />
          <Instances shown={shown} />
        </>
      )}
    </ApplicationFrame>
  );
}

function ProcessTypes({ shown }: { shown: Shown }) {
  const { id, processes, region } = shown.application;
  const { data, reload } = useQuery(SIZES, { id });
  const sizes = inOrder(data?.listApplicationTypes.data ?? [], region);
  return (
    <Section title="Process types">
      <ul class="rows">
        {processes.map((process) => (
          <Scale key={process.id} process={process} shown={shown}>
            {data && (
              <Start
                {...{ process, shown, sizes, reload }}
                given={data.listProcesses.data.find((one) => one.id === process.id)}
              />
            )}
          </Scale>
        ))}
      </ul>
    </Section>
  );
}

interface StartProps {
  process: ApplicationData['processes'][number];
  shown: Shown;
  given: { command: string | null; application_type: string | null } | undefined;
  sizes: readonly Size[];
  reload(): Promise<void>;
}

/** Its size and its command, which count from the next start. */
function Start({ process, shown, given, sizes, reload }: StartProps) {
  const { id, application_type } = shown.application;
  const own = sizes.find((size) => size.id === (given?.application_type ?? application_type));
  const fields = useFields({ application_type: given?.application_type ?? '', command: given?.command ?? '' });
  const [isSaved, setSaved] = useState(false);
  const action = useAction(async () => {
    const { application_type: size, command } = fields.values;
    const input = { application_type: size || null, command: command || null };
    await request(UPDATE, { id, process_id: process.id, input });
    await Promise.all([reload(), shown.reload()]);
  });
  const ofApplication = sizes.find((size) => size.id === application_type);
  const options = [
    { value: '', label: `As the application (${ofApplication?.name ?? application_type})` },
    ...sizes.map((size) => ({ value: size.id, label: sizeText(size), disabled: !size.available })),
  ];
  return (
    <details class="more process-start">
      <summary>
        Size and command<span class="off-screen"> of {process.type}</span>
        {own && <span class="faint">: {sizeText(own)}</span>}
      </summary>
      <fieldset class="bare" disabled={!shown.mayChange}>
        <Form action={action} done={setSaved} onInput={() => setSaved(false)}>
          <Select
            label={`Size of ${process.type}`}
            {...fields.of('application_type', action)}
            options={options}
            onChange={(value) => fields.set({ application_type: value })}
          />
          <Field
            label={`Start command of ${process.type}`}
            {...fields.of('command', action)}
            placeholder={process.effective_command ?? 'found out'}
          />
          <Problem error={action.error} fields={['application_type', 'command']} />
          <footer class="actions">
            <span aria-live="polite" class="faint">
              {isSaved ? 'Saved. It counts from the next restart or deployment.' : ''}
            </span>
            <Submit action={action}>Save</Submit>
          </footer>
        </Form>
      </fieldset>
    </details>
  );
}

interface ScaleProps {
  process: ApplicationData['processes'][number];
  shown: Shown;
  children: ComponentChildren;
}

function Scale({ process, shown, children }: ScaleProps) {
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
      {children}
    </li>
  );
}

const COLUMNS = ['Process', 'Status', 'CPU', 'Memory', 'Restarts', 'Started'];

function Instances({ shown }: { shown: Shown }) {
  const actions = shown.mayChange && shown.application.current_deployment_id && <OpenShell shown={shown} />;
  const mayEnter = shown.mayChange;
  const { data, error, reload } = useQuery(INSTANCES, { id: shown.application.id });
  const list = data?.listApplicationInstances.data;
  useMoving(Boolean(list), reload);
  return (
    <Section title="Instances" actions={actions}>
      {!list && <Waiting error={error} />}
      {list?.length === 0 && <p class="faint">No running instances.</p>}
      {list && list.length > 0 && (
        <Table label="Instances" head={mayEnter ? [...COLUMNS, 'Terminal'] : COLUMNS}>
          {list.map((instance) => (
            <tr key={instance.id}>
              <th scope="row">
                <span>{instance.process_type}</span>
              </th>
              <td>
                <StatusReason value={instance.status} reason={instance.status_reason} />
              </td>
              <td>{instance.cpu_percent === null ? '–' : `${instance.cpu_percent} %`}</td>
              <td>{instance.memory_mb === null ? '–' : `${instance.memory_mb} MB`}</td>
              <td>{instance.restart_count}</td>
              <td>
                <Ago time={instance.started_at} />
              </td>
              {mayEnter && <td>{instance.status === 'running' && <OpenShell {...{ shown, instance }} />}</td>}
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
