// What a person has typed and nobody has saved. Whoever holds some says so here, and the router asks before a link, the
// keyboard, the browser's "back" or a reload throws it away. What a page does by itself, after saving, asks nothing.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

interface Holder {
  holds(): boolean;
  /** Where it was typed; null where the page holds it. */
  form(): Element | null;
}

const holders = new Set<Holder>();
/** Set once the person has chosen to leave, until they are elsewhere. */
let isLeaving = false;

interface Leaving {
  /** Leaves the page, or closes the dialog. */
  leave(): void;
  isDialog: boolean;
}

/** Waits for the answer of the person. */
export const leavingWaits = signal<Leaving | null>(null);

/** @param dialog asks only for what was typed in it */
export function hasUnsaved(dialog?: Element): boolean {
  return !isLeaving && [...holders].some(({ holds, form }) => (!dialog || dialog.contains(form())) && holds());
}

/**
 * Runs `leave` now, or when the person has agreed to lose what is not saved.
 * @param dialog is closed by it; without one, the page is left
 */
export function leaveBy(leave: () => void, dialog?: Element): void {
  if (hasUnsaved(dialog)) leavingWaits.value = { leave, isDialog: dialog !== undefined };
  else leave();
}

/** The person agrees. */
export function leaveNow(): void {
  const waiting = leavingWaits.peek();
  leavingWaits.value = null;
  if (!waiting) return;
  if (!waiting.isDialog) {
    isLeaving = true;
    return waiting.leave();
  }
  // The question is closed first: what is below it cannot have the focus until then.
  setTimeout(waiting.leave);
}

/** Another page is shown. */
export function haveLeft(): void {
  isLeaving = false;
}

/**
 * Asks whenever the page is to be left.
 * @param form whose dialog is not closed unasked either
 */
export function useUnsaved(holds: () => boolean, form: () => Element | null = () => null): void {
  const newest = useRef(holds);
  newest.current = holds;
  useEffect(() => {
    const holder = { holds: () => newest.current(), form };
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
  const holds = (): boolean => {
    const { before, isTouched } = state.current;
    return isWatched && isTouched && form.current !== null && textOf(form.current) !== before;
  };
  useUnsaved(holds, () => form.current);
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
