// Keys that work on every page: Ctrl-K and `/` open the palette, `g` and a letter goes somewhere, `?` shows them.
import { signal } from '@preact/signals';
import { Dialog } from './parts/dialog';
import { leaveBy } from './parts/unsaved';
import { currentProject, pageProject } from './place';
import { navigate } from './router';
import { viewer } from './session';

export { pageProject };

const isOpen = signal(false);

/** What the palette shows: everything, or what can be switched to; null while it is closed. */
export type PaletteMode = 'all' | 'switch';
export const paletteMode = signal<PaletteMode | null>(null);

export function openPalette(mode: PaletteMode = 'all'): void {
  if (viewer.value) paletteMode.value = mode;
}

export function openKeys(): void {
  isOpen.value = true;
}

const GOES: Record<string, [label: string, to: () => string]> = {
  p: ['Projects', () => '/'],
  a: ['Applications of the project', () => `/projects/${currentProject()}`],
  d: ['Databases of the project', () => `/projects/${currentProject()}/databases`],
  r: ['All resources of the project', () => `/projects/${currentProject()}/resources`],
  n: ['New application', () => `/projects/${currentProject()}/new`],
  s: ['Account and security', () => '/settings'],
};
/** So long after `g` its letter may come. */
const SEQUENCE_MS = 1_500;

export function startKeyboard(): void {
  let goneAt = -Infinity;
  addEventListener('keydown', (event) => {
    const target = event.target as Element;
    if (isPaletteKey(event) && !target.closest('dialog')) {
      event.preventDefault();
      return openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, textarea, select, dialog')) return;
    const go = event.timeStamp - goneAt < SEQUENCE_MS ? GOES[event.key] : undefined;
    goneAt = event.key === 'g' ? event.timeStamp : -Infinity;
    if (go) leaveBy(() => navigate(go[1]()));
    else if (event.key === '?') openKeys();
    else if (event.key === '/') focusSearch();
    else return;
    event.preventDefault();
  });
}

/** The search of the page, such as that of a log, or the palette. */
function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]');
  if (field) field.focus();
  else openPalette();
}

/** Also while something is typed. */
function isPaletteKey({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  return key.toLowerCase() === 'k' && ctrlKey !== metaKey && !altKey && !shiftKey;
}

export function Keys() {
  if (!isOpen.value) return null;
  return (
    <Dialog title="Keyboard" onClose={() => void (isOpen.value = false)}>
      <dl class="keys">
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>K</kbd>
          </dt>
          <dd>Find anything, and do anything, by name</dd>
        </div>
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>Search on the page, or everywhere</dd>
        </div>
        {Object.entries(GOES).map(([key, [label]]) => (
          <div key={key}>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>This list</dd>
        </div>
      </dl>
    </Dialog>
  );
}
