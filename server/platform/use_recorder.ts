// Records the use of keys, sessions and robot accounts: collected in memory, and written every few seconds.
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';

export interface UseRecorder {
  add(id: string): void;
  /** Flushes pending writes. */
  close(): Promise<void>;
}

/** @param write what fails to be written is not written again: the next use is */
export function openUseRecorder(
  { name, everyMs, log }: { name: string; everyMs: number; log: Logger },
  write: (ids: string[]) => Promise<unknown>,
): UseRecorder {
  const used = new Set<string>();
  const { finish } = repeatWork({ name, everyMs, log, failure: 'last uses not recorded' }, async () => {
    const ids = [...used];
    used.clear();
    if (ids.length) await write(ids);
  });
  return { add: (id) => void used.add(id), close: finish };
}
