// What a person has typed and nobody has saved. Whoever holds some says so here, and the router asks before a link, the
// keyboard, the browser's "back" or a reload throws it away. What a page does by itself, after saving, asks nothing.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

const holders = new Set<() => boolean>();
/** Set once the person has chosen to leave, until they are elsewhere. */
let isLeaving = false;

/** Leaves the page; waits for the answer of the person. */
export const leavingWaits = signal<(() => void) | null>(null);

export function hasUnsaved(): boolean {
  return !isLeaving && [...holders].some((holds) => holds());
}

/** Runs `leave` now, or when the person has agreed to lose what is not saved. */
export function leaveBy(leave: () => void): void {
  if (hasUnsaved()) leavingWaits.value = leave;
  else leave();
}

/** The person agrees. */
export function leaveNow(): void {
  const leave = leavingWaits.peek();
  leavingWaits.value = null;
  isLeaving = true;
  leave?.();
}

/** Another page is shown. */
export function haveLeft(): void {
  isLeaving = false;
}

/** Asks whenever the page is to be left. */
export function useUnsaved(holds: () => boolean): void {
  const newest = useRef(holds);
  newest.current = holds;
  useEffect(() => {
    const holder = (): boolean => newest.current();
    holders.add(holder);
    return () => void holders.delete(holder);
  }, []);
}

/** Before any of these, the fields have what was there before the person came. */
const BEGINNINGS = ['focusin', 'pointerdown', 'keydown'];
/** By these, fields change: also by a button, which adds or removes one. */
const CHANGES = ['input', 'change', 'click'];

/**
 * Watches the fields of a form, whoever draws them.
 * @returns for the form, and `saved`, to be called when it has been
 */
export function useUnsavedForm(isWatched: boolean) {
  const form = useRef<HTMLFormElement>(null);
  const state = useRef({ before: '', isTouched: false });
  useUnsaved(() => {
    const { before, isTouched } = state.current;
    return isWatched && isTouched && form.current !== null && textOf(form.current) !== before;
  });
  useEffect(() => {
    const element = form.current;
    const begin = (): void => {
      if (element && !state.current.isTouched) state.current.before = textOf(element);
    };
    const touch = (): void => void (state.current.isTouched = true);
    for (const type of BEGINNINGS) element?.addEventListener(type, begin, true);
    for (const type of CHANGES) element?.addEventListener(type, touch, true);
  }, []);
  return { form, saved: () => void (state.current.isTouched = false) };
}

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** A question such as "type the name" is no field that could be saved; of a file, its text is in another field. */
function textOf(form: HTMLFormElement): string {
  const controls = [...form.querySelectorAll<Control>('input:not([type=file]), select, textarea')];
  return JSON.stringify(
    controls
      .filter((control) => !('question' in control.dataset))
      .map((control) => [control.name, 'checked' in control && control.checked, control.value]),
  );
}

/** Reloads, closed windows and pages of others: the browser asks in its own words. */
export function guardWindow(): void {
  addEventListener('beforeunload', (event) => {
    if (hasUnsaved()) event.preventDefault();
  });
}
