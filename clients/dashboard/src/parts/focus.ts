// Where the focus goes when what has it is opened, closed or removed: whoever uses the keyboard does not begin at the
// top again.
import { useLayoutEffect, useRef } from 'preact/hooks';

/** What has the focus, then what is around it and takes the focus too, such as its table and the page. */
let places: readonly HTMLElement[] = [];

/** Gives the focus to what is around it, or to the next page, where what has it is removed. */
export function startFocus(): void {
  document.addEventListener('focusin', ({ target }) => void (places = placesAround(target)));
  new MutationObserver(() => {
    const [last] = places;
    if (!last || last.isConnected || document.activeElement !== document.body) return;
    const next = places.find((place) => place.isConnected) ?? document.getElementById('main');
    next?.focus({ preventScroll: true });
  }).observe(document.body, { childList: true, subtree: true });
}

function placesAround(target: EventTarget | null | undefined): HTMLElement[] {
  if (!(target instanceof HTMLElement)) return [];
  return [target, ...placesAround(target.parentElement?.closest('[tabindex]'))];
}

/** Gives the focus to the first field of what is opened, and back to what has opened it. */
export function useOpened<Kind extends HTMLElement>(isWanted = true) {
  const opened = useRef<Kind>(null);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    return () => {
      const hasFocus = opened.current?.contains(document.activeElement);
      if (hasFocus && opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  useLayoutEffect(() => {
    if (isWanted) opened.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
  }, []);
  return opened;
}

/** Gives the focus to a field of a new page: browsers heed `autofocus` in a document that they load, and in dialogs. */
export function useAutoFocus(isWanted = true) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (isWanted) field.current?.focus();
  }, []);
  return field;
}
