// The variables of an environment, each in a row.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ResourceLink } from '../../parts/resource_name';
import type { Draft } from './draft';

interface RowsProps {
  projectId: string;
  drafts: Draft[];
  changed(drafts: Draft[]): void;
}

const EMPTY: Draft = { key: '', value: '', available_at: 'both', isStored: false, managed: false };

export function VariableRows({ projectId, drafts, changed }: RowsProps) {
  const set = (index: number, part: Partial<Draft>): void =>
    changed(drafts.map((draft, at) => (at === index ? { ...draft, ...part } : draft)));
  const add = useRef<HTMLButtonElement>(null);
  const remove = (index: number): void => {
    // The button that was pressed goes with its row.
    add.current?.focus();
    changed(drafts.filter((_, at) => at !== index));
  };
  return (
    <>
      <ul class="variables" aria-label="Variables">
        {drafts.map((draft, index) => (
          <Row
            key={draft.isStored ? draft.key : index}
            projectId={projectId}
            draft={draft}
            set={(part) => set(index, part)}
            remove={() => remove(index)}
          />
        ))}
      </ul>
      <button ref={add} type="button" class="quiet" onClick={() => changed([...drafts, EMPTY])}>
        Add a variable
      </button>
    </>
  );
}

interface RowProps {
  projectId: string;
  draft: Draft;
  set(part: Partial<Draft>): void;
  remove(): void;
}

function Row({ projectId, draft, set, remove }: RowProps) {
  const [isShown, setShown] = useState(!draft.isStored);
  const called = draft.key || 'new variable';
  const name = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!draft.key) name.current?.focus();
  }, []);
  return (
    <li>
      <input
        ref={name}
        aria-label={`Name of ${called}`}
        value={draft.key}
        placeholder="NAME"
        spellcheck={false}
        readOnly={draft.isStored}
        onInput={(event) => set({ key: event.currentTarget.value.trim() })}
      />
      <input
        aria-label={`Value of ${called}`}
        type={(isShown ? 'text' : 'password') as 'text'}
        autocomplete="off"
        spellcheck={false}
        value={draft.value}
        readOnly={draft.managed}
        onInput={(event) => set({ value: event.currentTarget.value })}
      />
      <select
        aria-label={`When ${called} is available`}
        value={draft.available_at}
        disabled={draft.managed}
        onChange={(event) => set({ available_at: event.currentTarget.value as Draft['available_at'] })}
      >
        <option value="both">build and run</option>
        <option value="build">build</option>
        <option value="runtime">run</option>
      </select>
      <button type="button" class="quiet small" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
        {isShown ? 'Hide' : 'Show'}
        <span class="off-screen"> {called}</span>
      </button>
      {draft.managed ? (
        <small class="faint">
          set by {draft.managed_by && <ResourceLink projectId={projectId} id={draft.managed_by} kind="a database" />}
        </small>
      ) : (
        <button type="button" class="quiet small" onClick={remove}>
          Remove<span class="off-screen"> {called}</span>
        </button>
      )}
    </li>
  );
}

/** Takes the lines of a `.env` file. */
export function Paste({ paste }: { paste(text: string): void }) {
  const [text, setText] = useState('');
  return (
    <details class="paste">
      <summary>Paste a .env file</summary>
      <label>
        Lines of the form <code>NAME=value</code>
        <textarea rows={5} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="button" class="quiet" onClick={() => (paste(text), setText(''))}>
        Apply
      </button>
    </details>
  );
}
