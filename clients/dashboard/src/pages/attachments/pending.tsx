// Variables that are set and that what runs has not, with the restart that gives them to it.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Problem } from '../../parts/form';
import type { Shown } from '../application/frame';
import { RESTART } from './attach';

const PENDING = graphql(`
  query PendingVariables($id: ID!) {
    getApplication(id: $id) {
      pending_variables
    }
  }
`);
/** Names beyond these are counted. */
const NAMES_MAX = 6;

interface PendingProps {
  shown: Shown;
  /** Said of what has the old ones, such as a shell. */
  note?: string;
  /** Another value asks again. */
  version?: unknown;
}

export function PendingVariables({ shown, ...rest }: PendingProps) {
  if (!shown.mayChange) return null;
  // The status changes when a restart has ended.
  const { status, latest_deployment } = shown.application;
  return <Notice key={`${status} ${latest_deployment?.status} ${String(rest.version)}`} shown={shown} {...rest} />;
}

function Notice({ shown, note }: PendingProps) {
  const { id, status } = shown.application;
  const { data, reload } = useQuery(PENDING, { id });
  const restart = useAction(async () => {
    await request(RESTART, { id });
    await shown.reload();
    await reload();
  });
  const names = data?.getApplication.pending_variables ?? [];
  if (!names.length) return null;
  const isRunning = ['running', 'crashed'].includes(status);
  return (
    <div class="notice pending-variables" role="status">
      <p>
        <strong>{namesText(names)}</strong> {names.length === 1 ? 'takes' : 'take'} effect with the next restart or
        deployment. {note}
      </p>
      {isRunning && (
        <button
          type="button"
          class="quiet small"
          aria-busy={restart.isRunning ? true : undefined}
          onClick={() => void restart.run()}
        >
          Restart now
        </button>
      )}
      <Problem error={restart.error} />
    </div>
  );
}

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_MAX).join(', ');
  return names.length > NAMES_MAX ? `${shown} and ${names.length - NAMES_MAX} more` : shown;
}
