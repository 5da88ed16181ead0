// A setup that has begun, kept by the browser: the service restarts under the page, which may be loaded again.
import { signal } from '@preact/signals';

export interface StoredSetup {
  token: string;
  /** That the dashboard gets. */
  address: string;
}

const NAME = 'setup';

export const storedSetup = signal(read());

function read(): StoredSetup | null {
  try {
    return JSON.parse(localStorage.getItem(NAME) ?? 'null') as StoredSetup | null;
  } catch {
    return null;
  }
}

export function storeSetup(begun: StoredSetup): void {
  localStorage.setItem(NAME, JSON.stringify(begun));
  storedSetup.value = begun;
}

export function forgetSetup(): void {
  localStorage.removeItem(NAME);
  storedSetup.value = null;
}
