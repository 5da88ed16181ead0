import { signal } from '@preact/signals';

type Theme = 'light' | 'dark';

const KEY = 'theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

const chosen = (): Theme | null => {
  const stored = localStorage.getItem(KEY);
  return stored === 'light' || stored === 'dark' ? stored : null;
};
const current = (): Theme => chosen() ?? (dark.matches ? 'dark' : 'light');

/** Of the system, unless the person has chosen one. */
export const theme = signal<Theme>(current());

export function setTheme(value: Theme): void {
  localStorage.setItem(KEY, value);
  apply();
}

export function startTheme(): void {
  dark.addEventListener('change', apply);
  apply();
}

function apply(): void {
  theme.value = current();
  document.documentElement.dataset.theme = theme.value;
}
