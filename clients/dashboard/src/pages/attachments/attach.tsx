// Attaches a database to an application, from the page of either: what will be set, and the restart that it needs.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction, useQuery, type Action } from '../../api/use_query';
import { Dialog } from '../../parts/dialog';
import { Check, Field, Form, Problem, Select, useFields } from '../../parts/form';
import { Waiting } from '../../parts/page';
import { SubmitWhen } from '../../parts/submit_when';

const CHOICES = graphql(`
  query AttachmentChoices($project_id: ID!) {
    listApplications(project_id: $project_id, limit: 100, sort: "name") {
      data {
        id
        name
        status
      }
    }
    listDatabases(project_id: $project_id, limit: 100, sort: "name") {
      data {
        id
        name
        engine
      }
    }
  }
`);
const ATTACH = graphql(`
  mutation Attach($id: ID!, $input: CreateDatabaseAttachmentInput!) {
    createDatabaseAttachment(id: $id, input: $input) {
      id
    }
  }
`);
export const RESTART = graphql(`
  mutation RestartForVariables($id: ID!) {
    restartApplication(id: $id) {
      id
    }
  }
`);

interface AttachProps {
  projectId: string;
  /** The side on whose page it is; the other one is chosen. */
  application?: string;
  database?: string;
  /** Names of variables that the application has by itself, where they are known. */
  taken?: readonly string[];
  done(): Promise<void>;
  onClose(): void;
}

export function AttachDialog({ projectId, application, database, taken = [], done, onClose }: AttachProps) {
  const { data, error } = useQuery(CHOICES, { project_id: projectId });
  const fields = useFields<Texts>({ application: application ?? '', database: database ?? '', env_prefix: '' });
  const [restarts, setRestarts] = useState(true);
  const applications = data?.listApplications.data ?? [];
  const databases = data?.listDatabases.data ?? [];
  const of = chosen(applications, fields.values.application);
  const to = chosen(databases, fields.values.database);
  const prefix = fields.values.env_prefix || (to && defaultPrefix(to.engine)) || '';
  const variables = to ? variableNames(prefix, to.engine) : [];
  const isRunning = of?.status === 'running' || of?.status === 'crashed';
  const action = useAction(async () => {
    if (!of || !to) return;
    await request(ATTACH, { id: to.id, input: { application_id: of.id, env_prefix: prefix } });
    if (isRunning && restarts) await request(RESTART, { id: of.id });
    await done();
    onClose();
  });
  const conflicts = variables.filter((name) => taken.includes(name));
  return (
    <Dialog title={application ? 'Attach a database' : 'Attach to an application'} onClose={onClose}>
      {!data && <Waiting error={error} rows={3} />}
      {data && (
        <Form action={action}>
          {!application && <Choice label="Application" {...{ fields, action }} list={applications} />}
          {!database && <Choice label="Database" {...{ fields, action }} list={databases} />}
          {!database && !databases.length && (
            <p>
              <a href={`/projects/${projectId}/databases`}>Create a database first.</a>
            </p>
          )}
          <Field
            label="Prefix of the variables"
            {...fields.of('env_prefix', action)}
            placeholder={to ? defaultPrefix(to.engine) : 'DATABASE'}
            autocomplete="off"
            hint="Another one is needed for a second database. Capital letters, digits and underscores."
          />
          <Effect variables={variables} conflicts={conflicts} name={of?.name} />
          {isRunning && (
            <Check
              label={`Restart ${of.name} now`}
              name="restart"
              checked={restarts}
              onChange={(event) => setRestarts(event.currentTarget.checked)}
              hint="Until then it runs without these variables."
            />
          )}
          <Problem error={action.error} fields={['env_prefix']} />
          <Footer isReady={of !== undefined && to !== undefined} {...{ action, onClose }} />
        </Form>
      )}
    </Dialog>
  );
}

/** The only one needs no choice. */
function chosen<One extends { id: string }>(list: readonly One[], id: string): One | undefined {
  return list.find((one) => one.id === id) ?? (list.length === 1 ? list[0] : undefined);
}

function Footer({ isReady, action, onClose }: { isReady: boolean; action: Action<void>; onClose(): void }) {
  return (
    <footer class="actions">
      <button type="button" class="quiet" onClick={onClose}>
        Cancel
      </button>
      <SubmitWhen isReady={isReady} action={action}>
        Attach
      </SubmitWhen>
    </footer>
  );
}

type Texts = Record<'application' | 'database' | 'env_prefix', string>;

interface ChoiceProps {
  label: 'Application' | 'Database';
  fields: ReturnType<typeof useFields<Texts>>;
  action: Action<void>;
  list: readonly { id: string; name: string }[];
}

function Choice({ label, fields, action, list }: ChoiceProps) {
  const name = label === 'Application' ? 'application' : 'database';
  const all = list.map((one) => ({ value: one.id, label: one.name }));
  const options = list.length === 1 ? all : [{ value: '', label: 'Choose …' }, ...all];
  const value = chosen(list, fields.values[name])?.id ?? '';
  return (
    <Select
      label={label}
      {...fields.of(name, action)}
      {...{ value, options }}
      onChange={(id) => fields.set({ [name]: id })}
    />
  );
}

function Effect({
  variables,
  conflicts,
  name,
}: {
  variables: string[];
  conflicts: string[];
  name: string | undefined;
}) {
  if (!variables.length) return null;
  return (
    <div class="attach-effect" aria-live="polite">
      <p>{name ?? 'The application'} gets these variables, and new values when the password changes:</p>
      <p class="variable-names">
        {variables.map((variable) => (
          <code key={variable}>{variable}</code>
        ))}
      </p>
      {conflicts.length > 0 && (
        <p class="problem">
          {conflicts.join(', ')} {conflicts.length === 1 ? 'is' : 'are'} set already. Choose another prefix, or remove
          what is there first.
        </p>
      )}
    </div>
  );
}

const isKeyValue = (engine: string): boolean => ['redis', 'valkey'].includes(engine);
const defaultPrefix = (engine: string): string => (isKeyValue(engine) ? 'REDIS' : 'DATABASE');

/** As the API names them; an answer has them once there is an attachment. */
function variableNames(prefix: string, engine: string): string[] {
  const parts = ['URL', 'HOST', 'PORT', 'USER', 'PASSWORD', ...(isKeyValue(engine) ? [] : ['NAME'])];
  return parts.map((part) => `${prefix}_${part}`);
}
