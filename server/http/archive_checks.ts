// Archives are checked two at a time, one of an account, and the account that has used least comes first: each check
// may keep a processor busy for seconds.
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';

export interface ArchiveChecks {
  /** Waits for its turn, and works. @param gone leaves the queue @throws service_unavailable where it has left it */
  run<T>(account: string, work: () => Promise<T>, gone?: AbortSignal): Promise<T>;
  /** @throws rate_limited where the account has used up its time */
  requireTime(account: string): void;
}

interface Waiting {
  account: string;
  start(): void;
}

const AT_ONCE = 2;
const WINDOW_MS = limits.archiveCheckWindowSeconds * 1000;
const WINDOW_WORK_MS = limits.archiveCheckSeconds * 1000;

export function openArchiveChecks(now: () => number = () => performance.now()): ArchiveChecks {
  const waiting: Waiting[] = [];
  const running = new Set<string>();
  const used = new Map<string, { ms: number; since: number }>();
  const usedBy = (account: string): number => {
    for (const [one, { since }] of used) if (now() - since >= WINDOW_MS) used.delete(one);
    return used.get(account)?.ms ?? 0;
  };
  const startNext = (): void => {
    const ready = waiting.filter(({ account }) => !running.has(account));
    const [next] = ready.sort((one, other) => usedBy(one.account) - usedBy(other.account));
    if (!next || running.size >= AT_ONCE) return;
    waiting.splice(waiting.indexOf(next), 1);
    running.add(next.account);
    next.start();
  };
  return {
    async run(account, work, gone) {
      await new Promise<void>((resolve, reject) => {
        const leave = (): void => {
          waiting.splice(waiting.indexOf(one), 1);
          reject(problem('service_unavailable', 'The sender has not waited for the check.'));
        };
        const start = (): void => (gone?.removeEventListener('abort', leave), resolve());
        const one = { account, start };
        waiting.push(one);
        if (gone?.aborted) return leave();
        gone?.addEventListener('abort', leave, { once: true });
        startNext();
      });
      const startedAt = now();
      try {
        return await work();
      } finally {
        used.set(account, { ms: usedBy(account) + now() - startedAt, since: used.get(account)?.since ?? startedAt });
        running.delete(account);
        startNext();
      }
    },
    requireTime(account) {
      if (usedBy(account) < WINDOW_WORK_MS) return;
      const seconds = Math.ceil(((used.get(account)?.since ?? now()) + WINDOW_MS - now()) / 1000);
      const detail =
        `The archives of this account took ${limits.archiveCheckSeconds} seconds to check within ` +
        `${limits.archiveCheckWindowSeconds} seconds. Send the next one in ${seconds} seconds.`;
      throw problem('rate_limited', detail, {}, { 'Retry-After': String(seconds) });
    },
  };
}
