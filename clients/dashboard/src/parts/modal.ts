import { useLayoutEffect, useRef } from 'preact/hooks';

/** Opens a `<dialog>` for as long as it is drawn, and before the next key, which would reach the page below. */
export function useModal() {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return element;
}
