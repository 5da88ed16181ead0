import { useLayoutEffect, useRef } from 'preact/hooks';

/**
 * Opens a `<dialog>` for as long as it is drawn, and before the next key, which would reach the page below.
 * @param onClose called when the person closes it, and not for one that was taken away: its event comes when the next
 * one may be open
 */
export function useModal(onClose: () => void) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.addEventListener('close', onClose);
    dialog?.showModal();
    return () => {
      dialog?.removeEventListener('close', onClose);
      dialog?.close();
    };
  }, []);
  return element;
}
