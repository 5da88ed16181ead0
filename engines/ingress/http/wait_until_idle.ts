// The drain of an instance: its open requests end, and its WebSockets are ended.
import { setTimeout as sleep } from 'node:timers/promises';
import type { IngressState } from '../ingress_state';
import type { Upstream } from '../upstream';
import { endTunnel } from './tunnel';

/** Resolves when the requests of an instance have ended, or after `ms`. */
export async function waitUntilIdle(ingress: IngressState, upstream: Upstream, ms: number): Promise<void> {
  if (upstream.open === 0) return;
  const timer = setTimeout(
    () => upstream.tunnels.forEach(endTunnel),
    Math.min(ms, ingress.limits.tunnelDrainMs),
  ).unref();
  const late = new AbortController();
  const empty = new Promise<void>((resolve) => upstream.idleWaiters.push(resolve));
  await Promise.race([empty, sleep(ms, undefined, { signal: late.signal, ref: false }).catch(() => undefined)]);
  late.abort();
  clearTimeout(timer);
}
