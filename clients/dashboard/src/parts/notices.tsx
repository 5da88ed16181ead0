// Short notices of what has been done, with a button that takes it back where the API can.
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../api/use_query';

export interface Notice {
  text: string;
  /** Takes it back. */
  undo?: (() => Promise<unknown>) | undefined;
}

interface Shown extends Notice {
  id: number;
}

const notices = signal<readonly Shown[]>([]);
/** Older ones make room. */
const SHOWN_MAX = 3;
/** Long enough to read it and to reach the button. */
const STAYS_MS = 10_000;
let count = 0;

export function showNotice(notice: Notice): void {
  count += 1;
  notices.value = [...notices.value.slice(1 - SHOWN_MAX), { ...notice, id: count }];
}

function remove(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** Stands at the end of the page. It is there before the first notice, so that notices are announced. */
export function Notices() {
  return (
    <div class="notices" role="status">
      {notices.value.map((notice) => (
        <OneNotice key={notice.id} {...notice} />
      ))}
    </div>
  );
}

function OneNotice({ id, text, undo }: Shown) {
  // Who has reached it with the keyboard or the pointer is not done with it.
  const [isHeld, setHeld] = useState(false);
  const action = useAction(async () => {
    await undo?.();
    remove(id);
  });
  const stays = isHeld || action.isRunning || action.error !== null;
  useEffect(() => {
    if (stays) return undefined;
    const timer = setTimeout(() => remove(id), STAYS_MS);
    return () => clearTimeout(timer);
  }, [stays]);
  return (
    <p
      class="toast"
      onFocusIn={() => setHeld(true)}
      onFocusOut={() => setHeld(false)}
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={({ currentTarget }) => setHeld(currentTarget.contains(document.activeElement))}
    >
      <span>{action.error ? action.error.message : text}</span>
      {undo && !action.error && (
        <button type="button" class="quiet small" aria-disabled={action.isRunning} onClick={() => void action.run()}>
          Undo
        </button>
      )}
      <button type="button" class="quiet small" aria-label={`Dismiss: ${text}`} onClick={() => remove(id)}>
        ×
      </button>
    </p>
  );
}
