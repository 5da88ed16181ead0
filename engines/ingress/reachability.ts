// Instances on other machines, which may be lost without a word: connections to them stay open, and nothing answers.
// Where a request waits for its answer, a connection without a request tells whether its instance can be reached. Until
// one succeeds, no visitor is sent there while there is another instance.
import { isElsewhere, noteUnanswered, tryConnection } from './confirmation';
import type { IngressLimits } from './limits';
import { closeIdle, type Upstream } from './upstream';

/** Nobody has answered. A refusal is an answer, and what lacks on this machine says nothing of another. */
const UNANSWERED = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN']);

/** Another instance is preferred for this time after a refusal. */
const AVOID_MS = 1_000;

/** A connection for a request was not made. */
export function noteFailedConnection(upstream: Upstream, error: NodeJS.ErrnoException, now: number): void {
  upstream.avoidUntil = now + AVOID_MS;
  noteUnanswered(upstream, error, now);
  if (isElsewhere(upstream.location) && UNANSWERED.has(error.code ?? '')) markUnreachable(upstream, now);
}

/** Unless that is under way, or was done less than `probeEveryMs` ago. */
export function probeInstance(
  upstream: Upstream,
  now: number,
  { probeMs, probeEveryMs }: Pick<IngressLimits, 'probeMs' | 'probeEveryMs'>,
): void {
  if (upstream.isProbed || now - upstream.probedAt < probeEveryMs) return;
  tryConnection(upstream, now, probeMs, (error) => {
    if (error === null || !UNANSWERED.has(error.code ?? '')) upstream.unreachableSince = null;
    else markUnreachable(upstream, performance.now());
  });
}

function markUnreachable(upstream: Upstream, now: number): void {
  upstream.unreachableSince ??= now;
  closeIdle(upstream, Infinity);
}
