// Records the use of keys, sessions and robot accounts: collected in memory, and written every few seconds.

export interface UseRecorder {
  add(id: string): void;
  /** Flushes pending writes. */
  close(): Promise<void>;
}

/** @param write must not throw */
export function openUseRecorder(everyMs: number, write: (ids: string[]) => Promise<unknown>): UseRecorder {
  const used = new Set<string>();
  const flush = async (): Promise<void> => {
    const ids = [...used];
    used.clear();
    if (ids.length) await write(ids);
  };
  const timer = setInterval(() => void flush(), everyMs).unref();
  return {
    add: (id) => void used.add(id),
    close: () => {
      clearInterval(timer);
      return flush();
    },
  };
}
