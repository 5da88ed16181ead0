// A question before something that cannot be taken back.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useAction } from '../api/use_query';
import { Problem } from './form';

interface DialogProps {
  title: string;
  children: ComponentChildren;
  onClose(): void;
}

export function Dialog({ title, children, onClose }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const isShown = useRef(true);
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement as HTMLElement | null;
    dialog?.showModal();
    return () => {
      isShown.current = false;
      dialog?.close();
      before?.focus?.();
    };
  }, []);
  // The event of a dialog that was taken away comes when another question may stand there.
  const close = (): void => {
    if (isShown.current) onClose();
  };
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={close} onCancel={close}>
      <article>
        <header>
          <h2 id="dialog-title">{title}</h2>
          <button type="button" class="quiet small" aria-label="Close" onClick={onClose}>
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
  onClose(): void;
}

export function Confirm({ title, children, verb, typed, work, onClose }: ConfirmProps) {
  const [text, setText] = useState('');
  const action = useAction(work);
  const isReady = typed === undefined || text === typed;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (isReady && (await action.run())) onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{children}</p>
        {typed !== undefined && (
          <label>
            Type <strong>{typed}</strong> to confirm
            <input value={text} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
          </label>
        )}
        <Problem error={action.error} />
        <footer class="actions">
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={typed === undefined ? '' : 'danger'} disabled={!isReady || action.isRunning}>
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
