// An upgrade or a rollback: the question before it, and its steps.
import type { ComponentChildren } from 'preact';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Dialog } from '../../parts/dialog';
import { Field, Form, Problem, Submit, useFields } from '../../parts/form';
import { Status } from '../../parts/status';
import { Ago, durationText } from '../../parts/time';
import type { Upgrade } from './installation';

const UPGRADE = graphql(`
  mutation UpgradeInstallation($version: String!, $password: String!) {
    upgradeInstallation(version: $version, password: $password) {
      base_url
    }
  }
`);
const ROLL_BACK = graphql(`
  mutation RollBackInstallation($version: String!, $password: String!) {
    rollBackInstallation(version: $version, password: $password) {
      base_url
    }
  }
`);

interface ChangeProps {
  kind: Upgrade['kind'];
  version: string;
  reload(): Promise<void>;
  onClose(): void;
}

export function Change({ kind, version, reload, onClose }: ChangeProps) {
  const isUpgrade = kind === 'upgrade';
  const start = async (password: string): Promise<void> => {
    if (isUpgrade) await request(UPGRADE, { version, password });
    else await request(ROLL_BACK, { version, password });
    await reload();
  };
  return (
    <WithPassword
      title={isUpgrade ? `Upgrade to ${version}?` : `Go back to ${version}?`}
      verb={isUpgrade ? 'Upgrade' : 'Go back'}
      work={start}
      onClose={onClose}
    >
      {isUpgrade
        ? 'The control database is backed up first. The dashboard and the API pause for a moment, and applications ' +
          'serve on. If the new version does not work, the present one comes back by itself.'
        : 'The database stays as it is. The dashboard and the API pause for a moment, and applications serve on.'}
    </WithPassword>
  );
}

interface WithPasswordProps {
  title: string;
  verb: string;
  children: ComponentChildren;
  work(password: string): Promise<void>;
  onClose(): void;
}

/** A question that asks for the password: whoever has only the session must not change the installation. */
export function WithPassword({ title, verb, children, work, onClose }: WithPasswordProps) {
  const fields = useFields({ password: '' });
  const action = useAction(() => work(fields.values.password));
  return (
    <Dialog title={title} onClose={onClose}>
      <Form action={action} isFleeting done={(isDone) => isDone && onClose()}>
        <p>{children}</p>
        <Field
          label="Your password"
          {...fields.of('password', action)}
          type="password"
          autocomplete="current-password"
          autoFocus
        />
        <Problem error={action.error} fields={['password']} />
        <footer class="actions">
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
          <Submit action={action}>{verb}</Submit>
        </footer>
      </Form>
    </Dialog>
  );
}

const STATES = { open: 'to_come', running: 'under_way', done: 'done', failed: 'failed' } as const;
const TONES = { running: '', done: 'good', undone: 'bad', failed: 'bad' } as const;

export function Steps({ upgrade }: { upgrade: Upgrade }) {
  const { outcome, summary, steps, notes, backup, started_at, ended_at } = upgrade;
  const isRunning = outcome === 'running';
  return (
    <details open={isRunning || outcome !== 'done'}>
      <summary>
        {summary}{' '}
        <span class="faint">{isRunning ? `Since ${durationText(started_at, null)}.` : <Ago time={ended_at} />}</span>
      </summary>
      <div class={`notice ${TONES[outcome]}`} role="status">
        <ol class="steps">
          {steps.map(({ title, state }) => (
            <li key={title}>
              {title} <Status value={STATES[state]} />
            </li>
          ))}
        </ol>
        {notes.map((note) => (
          <p key={note}>{note}</p>
        ))}
        {backup && (
          <p>
            Backup of the control database: <code>{backup}</code>
          </p>
        )}
      </div>
    </details>
  );
}
