// What saving an environment would change, and what somebody else has changed meanwhile.
import { useState } from 'preact/hooks';
import type { Action } from '../../api/use_query';
import { Dialog } from '../../parts/dialog';
import { Problem } from '../../parts/form';
import type { Change, Conflict } from './draft';

interface ReviewProps {
  changes: readonly Change[];
  /** Whether the application runs, so that it can be restarted with the new values. */
  isRunning: boolean;
  action: Action<boolean>;
  onClose(): void;
}

export function Review({ changes, isRunning, action, onClose }: ReviewProps) {
  const [restarts, setRestarts] = useState(isRunning);
  return (
    <Dialog title={`Save ${changes.length} ${changes.length === 1 ? 'change' : 'changes'}?`} onClose={onClose}>
      <ul class="diff" aria-label="Changes">
        {changes.map((change) => (
          <li key={change.key}>
            <code>{change.key}</code>
            <span class="faint"> {kindOf(change)}</span>
            {change.before && change.before.value !== change.after?.value && <del>{change.before.value || ' '}</del>}
            {change.after && change.after.value !== change.before?.value && <ins>{change.after.value || ' '}</ins>}
          </li>
        ))}
      </ul>
      {isRunning && (
        <label class="check">
          <input type="checkbox" checked={restarts} onChange={(event) => setRestarts(event.currentTarget.checked)} />
          Restart the application with the new values
        </label>
      )}
      <Problem error={action.error} />
      <footer class="actions">
        <button type="button" class="quiet" onClick={onClose}>
          Keep editing
        </button>
        <button
          type="button"
          aria-busy={action.isRunning ? true : undefined}
          onClick={() => void action.run(isRunning && restarts)}
        >
          Save
        </button>
      </footer>
    </Dialog>
  );
}

function kindOf({ before, after }: Change): string {
  if (!before) return 'is new';
  if (!after) return 'is removed';
  if (before.value === after.value) return `available at ${after.available_at}, before at ${before.available_at}`;
  return 'changes';
}

interface ConflictListProps {
  conflicts: readonly Conflict[];
  settle(key: string, which: 'mine' | 'theirs'): void;
}

export function ConflictList({ conflicts, settle }: ConflictListProps) {
  if (!conflicts.length) return null;
  return (
    <div class="notice bad" role="alert">
      <p>Somebody else has changed the same variables meanwhile. Nothing was saved: choose which value stays.</p>
      <ul class="diff">
        {conflicts.map(({ key, mine, theirs }) => (
          <li key={key}>
            <code>{key}</code>
            <p>
              Theirs: <q>{theirs ?? 'removed'}</q>{' '}
              <button type="button" class="quiet small" onClick={() => settle(key, 'theirs')}>
                Take theirs<span class="off-screen"> for {key}</span>
              </button>
            </p>
            <p>
              Yours: <q>{mine ?? 'removed'}</q>{' '}
              <button type="button" class="quiet small" onClick={() => settle(key, 'mine')}>
                Keep mine<span class="off-screen"> for {key}</span>
              </button>
            </p>
          </li>
        ))}
      </ul>
    </div>
  );
}
