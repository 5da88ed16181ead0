// Starts a command in the environment of an application.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Check, Field, Form, Problem, Select, Submit, TextArea, useFields } from '../../parts/form';
import { Section } from '../../parts/page';
import { navigate } from '../../router';
import { ApplicationFrame, type Shown } from '../application/frame';
import { PendingVariables } from '../attachments/pending';

const CREATE = graphql(`
  mutation CreateRun($id: ID!, $input: CreateRunInput!) {
    createRun(id: $id, input: $input) {
      id
    }
  }
`);

const FIELDS = ['command', 'process_type', 'timeout_seconds', 'env', 'tty'];
const HOUR_S = 3_600;

export function NewRun({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="New run" command={(app) => `svc run${app} -- COMMAND`}>
      {(shown) =>
        shown.mayChange ? (
          <>
            <PendingVariables shown={shown} note="A run has the variables of what runs now." />
            <Fields shown={shown} />
          </>
        ) : (
          <p>Your role in this project may not start runs.</p>
        )
      }
    </ApplicationFrame>
  );
}

function Fields({ shown }: { shown: Shown }) {
  const { id, processes } = shown.application;
  const fields = useFields({ command: '', process_type: '', timeout_seconds: String(HOUR_S), env: '' });
  const [tty, setTty] = useState(false);
  const action = useAction(async () => {
    const { command, process_type, timeout_seconds, env } = fields.values;
    const input = { command, tty, timeout_seconds: Number(timeout_seconds), env: variablesOf(env) };
    const { createRun } = await request(CREATE, { id, input: { ...input, ...(process_type && { process_type }) } });
    navigate(`/applications/${id}/runs/${createRun.id}${tty ? '/terminal' : ''}`);
  });
  return (
    <Section title="New run">
      <Form action={action}>
        <Field
          label="Command"
          {...fields.of('command', action)}
          required
          autoFocus
          autocomplete="off"
          placeholder="node migrate.js"
          hint="A shell runs it in a copy of the files of the release in service."
        />
        <div class="columns">
          <Select
            label="Size and variables of the process type"
            {...fields.of('process_type', action)}
            options={sizesOf(processes)}
            onChange={(value) => fields.set({ process_type: value })}
          />
          <Field
            label="Time limit in seconds"
            {...fields.of('timeout_seconds', action)}
            type="number"
            required
            min={1}
            hint="The run is ended after this time."
          />
        </div>
        <TextArea
          label="Additional variables"
          {...fields.of('env', action)}
          placeholder={'BATCH=100\nDRY_RUN=1'}
          hint="NAME=value, one on a line. They override those of the application."
        />
        <Check
          label="With a terminal"
          name="tty"
          error={action.error}
          checked={tty}
          onChange={(event) => setTty(event.currentTarget.checked)}
          hint="For a console or another program that a person uses. It ends when nobody is connected for a minute."
        />
        <Problem error={action.error} fields={FIELDS} />
        <footer class="actions">
          <Submit action={action}>Run</Submit>
        </footer>
      </Form>
    </Section>
  );
}

function sizesOf(processes: readonly { type: string }[]): { value: string; label: string }[] {
  return [
    { value: '', label: 'web, or the first one' },
    ...processes.map(({ type }) => ({ value: type, label: type })),
  ];
}

/** `NAME=value` on each line; what has no `=` is a name, which the API judges. */
function variablesOf(text: string): { key: string; value: string }[] {
  const lines = text.split('\n').filter((line) => line.trim());
  return lines.map((line) => {
    const [key = '', ...value] = line.split('=');
    return { key: key.trim(), value: value.join('=') };
  });
}
