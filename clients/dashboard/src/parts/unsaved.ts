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

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** Before any of these, the fields have what was there before the person came. */
const BEGINNINGS = ['focusin', 'pointerdown', 'keydown'];

/**
 * Watches the fields of a form, whoever draws them: those that the person has changed, since what the service changes
 * in others meanwhile is nobody's loss.
 * @returns for the form, and `saved`, to be called when it has been
 */
export function useUnsavedForm(isWatched: boolean) {
  const form = useRef<HTMLFormElement>(null);
  const state = useRef({ before: new Map<Control, string>(), touched: new Set<Control>() });
  const valueOf = (control: Control): string | undefined =>
    form.current?.contains(control) ? valueIn(control) : undefined;
  const isChanged = (control: Control): boolean => valueOf(control) !== state.current.before.get(control);
  useUnsaved(
    () => isWatched && form.current !== null && [...state.current.touched].some(isChanged),
    () => form.current,
  );
  useEffect(() => {
    const element = form.current;
    if (!element) return;
    const begin = (): void => {
      const { before, touched } = state.current;
      const untouched = controlsOf(element).filter((control) => !touched.has(control));
      state.current.before = new Map([
        ...[...before].filter(([control]) => touched.has(control)),
        ...untouched.map((control) => [control, valueIn(control)] as const),
      ]);
    };
    const touch = ({ target }: Event): void => {
      const control = controlsOf(element).find((one) => one === target);
      if (control) state.current.touched.add(control);
    };
    // By a button, which may add or remove fields.
    const touchChanged = (): void => {
      const { before, touched } = state.current;
      for (const control of [...before.keys(), ...controlsOf(element)]) if (isChanged(control)) touched.add(control);
    };
    for (const type of BEGINNINGS) element.addEventListener(type, begin, true);
    element.addEventListener('input', touch, true);
    // They are drawn a moment after the click.
    element.addEventListener('click', () => setTimeout(touchChanged), true);
  }, []);
  return { form, saved: () => state.current.touched.clear() };
}

/** A question such as "type the name" is no field that could be saved; of a file, its text is in another field. */
function controlsOf(form: HTMLFormElement): Control[] {
  const all = [...form.querySelectorAll<Control>('input:not([type=file]), select, textarea')];
  return all.filter((control) => !('question' in control.dataset));
}

function valueIn(control: Control): string {
  return 'checked' in control && control.checked ? `${control.value} (checked)` : control.value;
}

/** Reloads, closed windows and pages of others: the browser asks in its own words. */
export function guardWindow(): void {
  addEventListener('beforeunload', (event) => {
    if (hasUnsaved()) event.preventDefault();
  });
}
