// A question before something that cannot be taken back.
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useAction } from '../api/use_query';
import { Problem } from './form';
import { showNotice } from './notices';
import { ProtectionLink } from './protection';
import { leaveBy } from './unsaved';

const FOCUSABLE = 'input:enabled, select:enabled, textarea:enabled, button:enabled, a[href]';

interface DialogProps {
  title: string;
  children: ComponentChildren;
  onClose(): void;
}

export function Dialog({ title, children, onClose }: DialogProps) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  const isShown = useRef(true);
  // Before the next key: it would reach the page below.
  useLayoutEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    dialog?.showModal();
    // The button that closes it stands first, and is not what anybody has come for.
    if (document.activeElement?.matches('dialog header button'))
      dialog?.querySelector<HTMLElement>(`article > :not(header) :is(${FOCUSABLE}), h2`)?.focus();
    return () => {
      isShown.current = false;
      dialog?.close();
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  // The event of a dialog that was taken away comes when another question may stand there.
  const close = (): void => {
    if (isShown.current) onClose();
  };
  const ask = (): void => leaveBy(close, element.current ?? undefined);
  // Browsers let a page refuse `cancel` only once in a row, so that the key is taken before they do.
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || event.isComposing) return;
    event.preventDefault();
    ask();
  };
  const onCancel = (event: Event): void => {
    event.preventDefault();
    ask();
  };
  return (
    <dialog ref={element} aria-labelledby={id} onClose={close} onCancel={onCancel} onKeyDown={onKeyDown}>
      <article>
        <header>
          <h2 id={id} tabIndex={-1}>
            {title}
          </h2>
          <button type="button" class="quiet small" aria-label="Close" onClick={ask}>
            ×
          </button>
        </header>
        {children}
      </article>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What happens, and what is lost. */
  children: ComponentChildren;
  /** Label of the button that does it. */
  verb: string;
  /** Has to be typed in: the name of what is deleted. */
  typed?: string;
  work(): Promise<unknown>;
  /** Said once it has been done, where the page does not show it. */
  done?: string;
  /** Takes it back, from the notice that says it. */
  undo?(): Promise<unknown>;
  /** As `undo`, where only what was done tells whether it can be taken back. */
  findUndo?: (() => Promise<(() => Promise<unknown>) | undefined>) | undefined;
  onClose(): void;
}

export function Confirm({ title, children, verb, typed, work, done, undo, findUndo, onClose }: ConfirmProps) {
  const [text, setText] = useState('');
  const action = useAction(work);
  const isReady = typed === undefined || text === typed;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (!isReady || !(await action.run())) return;
    if (done) showNotice({ text: done, undo: undo ?? (await findUndo?.()) });
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{children}</p>
        {typed !== undefined && (
          <label>
            Type <strong>{typed}</strong> to confirm
            <input autoFocus value={text} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
          </label>
        )}
        <Problem error={action.error} beside={action.error && <ProtectionLink error={action.error} />} />
        <footer class="actions">
          <button type="button" class="quiet" autoFocus={typed === undefined} onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={typed !== undefined || /^(Delete|Revoke)/.test(verb) ? 'danger' : ''}
            disabled={!isReady}
            aria-disabled={action.isRunning}
          >
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
