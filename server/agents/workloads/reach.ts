// Whether this machine, whose ingress serves requests, can connect to instances of a cluster. The network of a cluster
// may give it another address towards pods than its own (on k3s that of `flannel.1`). Where the rules of the namespaces
// do not name it, all requests are answered with 503 although the cluster calls the instances ready.
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../../core/log/log';
import type { WorkloadInstance } from '../../../drivers/workload';
import { reachOf, type Reach } from '../../platform/reach';

/** The rules for a new pod are there some seconds after it. */
const ATTEMPTS = 6;
const BETWEEN_MS = 2_500;
/** After a start with other settings the rules of all namespaces are written anew meanwhile. */
const ONCE_MORE_MS = 60_000;
/** One warning stands for all instances. */
const QUIET_MS = 600_000;

export interface ReachCheck {
  /** @param instance null: it has gone */
  noticed(uid: string, instance: WorkloadInstance | null): void;
  close(): void;
}

/** Warns of instances that are ready, and to which this machine cannot connect. Each is tried at two times. */
export function startReachCheck(
  log: Pick<Logger, 'warn'>,
  { betweenMs, onceMoreMs } = { betweenMs: BETWEEN_MS, onceMoreMs: ONCE_MORE_MS },
): ReachCheck {
  const running = new Map<string, AbortController>();
  let warnedAt = -Infinity;
  const check = async (address: string, port: number, signal: AbortSignal): Promise<boolean> => {
    let reach: Reach = { from: null, error: null };
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      reach = await reachOf(address, port);
      if (reach.error === null) return true;
      await pause(betweenMs, undefined, { signal, ref: false });
    }
    if (Date.now() - warnedAt < QUIET_MS) return false;
    warnedAt = Date.now();
    log.warn({ address, port, ...reach }, UNREACHED);
    return false;
  };
  const checkTwice = async (address: string, port: number, signal: AbortSignal): Promise<void> => {
    if (!(await check(address, port, signal))) return;
    await pause(onceMoreMs, undefined, { signal, ref: false });
    await check(address, port, signal);
  };
  return {
    noticed(uid, instance) {
      const { location, port } = instance ?? {};
      if (instance?.status !== 'running' || !location || port == null) {
        running.get(uid)?.abort();
        running.delete(uid);
      } else if (!running.has(uid)) {
        const stop = new AbortController();
        running.set(uid, stop);
        checkTwice(location.address, port, stop.signal).catch(() => undefined);
      }
    },
    close() {
      for (const stop of running.values()) stop.abort();
    },
  };
}

const UNREACHED =
  'an instance is ready, and this machine cannot connect to it. The address from which it connects must be among ' +
  'KUBERNETES_INGRESS_ADDRESSES (docs/KUBERNETES.md)';
