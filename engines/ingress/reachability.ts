// Instances on other machines, which may be lost without a word: connections to them stay open, and nothing answers.
// Where a request waits for its answer, a connection without a request tells whether its instance can be reached. Until
// one succeeds, no visitor is sent there while there is another instance.
import { connectInto, HOST_NETWORK } from '../../core/outbound/network_location';
import type { IngressLimits } from './limits';
import { closeIdle, type Upstream } from './upstream';

/** Nobody has answered. A refusal is an answer, and what lacks on this machine says nothing of another. */
const UNANSWERED = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN']);

/** Another instance is preferred for this time after a refusal. */
const AVOID_MS = 1_000;

export function isOnOtherMachine({ location }: Upstream): boolean {
  return 'address' in location && location.address !== HOST_NETWORK.address;
}

/** A connection for a request was not made. */
export function noteFailedConnection(upstream: Upstream, { code = '' }: NodeJS.ErrnoException, now: number): void {
  upstream.avoidUntil = now + AVOID_MS;
  if (isOnOtherMachine(upstream) && UNANSWERED.has(code)) markUnreachable(upstream, now);
}

/** Unless that is under way, or was done less than `probeEveryMs` ago. */
export function probeInstance(
  upstream: Upstream,
  now: number,
  { probeMs, probeEveryMs }: Pick<IngressLimits, 'probeMs' | 'probeEveryMs'>,
): void {
  if (upstream.isProbed || now - upstream.probedAt < probeEveryMs) return;
  upstream.isProbed = true;
  upstream.probedAt = now;
  const finish = (isReachable: boolean): void => {
    clearTimeout(late);
    upstream.isProbed = false;
    if (isReachable) upstream.unreachableSince = null;
    else markUnreachable(upstream, performance.now());
  };
  const abandon = connectInto(upstream.location, upstream.port, {
    onConnected(socket) {
      socket.on('error', () => undefined).destroy();
      finish(true);
    },
    onFailed: ({ code = '' }) => finish(!UNANSWERED.has(code)),
  });
  const late = setTimeout(() => (abandon(), finish(false)), probeMs).unref();
}

function markUnreachable(upstream: Upstream, now: number): void {
  upstream.unreachableSince ??= now;
  closeIdle(upstream, Infinity);
}
