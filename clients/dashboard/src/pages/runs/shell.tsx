// A shell with the files and variables of what runs: a run with a terminal, beside the instances or within one.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Problem } from '../../parts/form';
import { navigate } from '../../router';
import type { Shown } from '../application/frame';

const SHELL_RUN = graphql(`
  mutation StartShell($id: ID!, $input: CreateRunInput!) {
    createRun(id: $id, input: $input) {
      id
    }
  }
`);

/** The best shell that the application has, as `svc ssh` starts it. */
const SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -i; else exec sh -i; fi';

/** What the command of a run is called: nobody has typed that of a shell. */
export const commandText = (command: string): string => (command === SHELL ? 'Shell' : command);

interface OpenShellProps {
  shown: Shown;
  /** The instance that the shell enters; absent: it is beside them. */
  instance?: { id: string; process_type: string };
}

export function OpenShell({ shown, instance }: OpenShellProps) {
  const { id } = shown.application;
  const within = instance && { instance_id: instance.id };
  const shell = useAction(async () => {
    const { createRun } = await request(SHELL_RUN, { id, input: { command: SHELL, tty: true, ...within } });
    navigate(`/applications/${id}/runs/${createRun.id}/terminal`);
  });
  return (
    <>
      <Problem error={shell.error} />
      <button
        type="button"
        class="quiet"
        aria-disabled={shell.isRunning}
        {...(instance && { 'aria-label': `Open a terminal in this instance of ${instance.process_type}` })}
        onClick={() => void shell.run()}
      >
        {instance ? 'Terminal' : 'Open a shell'}
      </button>
    </>
  );
}
