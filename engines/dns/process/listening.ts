// A port that is taken, or an address that the host does not have yet: tried again until it can be bound. Zones are
// taken over meanwhile, so that they are answered from the first moment on.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answering } from '../answering';

/** Behind each failure; the last one again and again. */
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

export interface ListenEvents {
  /** No port can be bound; said once for each errno. */
  failed(error: Error): void;
  bound(port: number): void;
}

/** Goes on behind the first failure. @returns how to stop, and to wait until it has */
export async function listenUntilBound(
  answering: Answering,
  ports: number[],
  { failed, bound }: ListenEvents,
): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const { signal } = stopping;
  let said: string | null = null;
  const tryOnce = async (): Promise<boolean> => {
    try {
      bound(await answering.listen(ports));
      return true;
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      if (code !== said) failed(error as Error);
      said = code;
      return false;
    }
  };
  const retry = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted; failures += 1) {
      await sleep(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)], undefined, { signal }).catch(() => {});
      if (signal.aborted || (await tryOnce())) return;
    }
  };
  const retrying = (await tryOnce()) ? Promise.resolve() : retry();
  return {
    stop() {
      stopping.abort();
      return retrying;
    },
  };
}
