// Whom the address of a pod leads to. A cluster gives addresses of pods to others, maybe of another tenant, and a
// request that reaches them has its cookies and its body with it. So an address is trusted for a while after
// somebody has confirmed it. While nobody can, as while the API server of the cluster is away, it is trusted as long as
// it accepts connections without a gap: a pod that takes the place of another one needs time to start, in which nobody
// answers (docs/decisions/0213).
import {
  connectInto,
  HOST_NETWORK,
  type NetworkLocation,
  type ServerLocation,
} from '../../core/outbound/network_location';
import type { IngressLimits } from './limits';

/** A confirmation holds for so long by itself. */
export const CONFIRMED_MS = 15_000;
/** An accepted connection holds for so long: longer than a busy machine keeps the next one from being tried. */
const ANSWERED_MS = 5_000;
/** For requests that were on their way when the routes changed; a cluster needs longer to give an address away. */
const LEFT_MS = 500;
/** Where the last confirmation is older, connections are tried: a pod that takes an address over needs longer. */
const UNCONFIRMED_MS = 3_000;
/** Between two of them. Taking over an address takes a cluster longer: two containers end, and two start. */
const PROVE_EVERY_MS = 400;

/** Errors of this machine, which say nothing about another. */
const OF_THIS_MACHINE = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL']);

/** Of an upstream. Times of the monotonic clock. */
interface Trust {
  /** The addresses of others, those of networks on this machine among them, are given by this platform alone. */
  readonly isPod: boolean;
  readonly location: NetworkLocation | ServerLocation;
  trustedUntil: number;
  confirmedAt: number;
  doubtedAt: number;
}

interface Provable extends Trust {
  readonly port: number;
  readonly references: number;
  isProbed: boolean;
  probedAt: number;
}

/** On another machine, or in a network of one. */
export function isElsewhere(location: NetworkLocation | ServerLocation): boolean {
  return 'address' in location && location.address !== HOST_NETWORK.address;
}

/** Whether the address may get requests. */
export function isTrusted({ trustedUntil }: Pick<Trust, 'trustedUntil'>, now: number): boolean {
  return now <= trustedUntil;
}

/** At this time its address was that of the instance. A doubt that is newer stays. */
export function confirmUpstream(upstream: Pick<Provable, 'references'> & Trust, at: number): void {
  if (upstream.references === 0) return;
  upstream.confirmedAt = Math.max(upstream.confirmedAt, at);
  if (at > upstream.doubtedAt) upstream.trustedUntil = Math.max(upstream.trustedUntil, at + CONFIRMED_MS);
}

/** It gets no request before a confirmation that is newer than its doubt. */
export function isDoubted({ references, doubtedAt, confirmedAt }: Provable): boolean {
  return references > 0 && doubtedAt >= confirmedAt && doubtedAt !== -Infinity;
}

/** No route has it any more: connections that are being made to it are still its own for a moment. */
export function endTrust(upstream: Trust, now: number): void {
  if (upstream.isPod) upstream.trustedUntil = Math.min(upstream.trustedUntil, now + LEFT_MS);
}

/** A connection was accepted: by the same instance as before, if there was no gap. */
export function noteAnswered(upstream: Trust, now: number): void {
  if (isTrusted(upstream, now)) upstream.trustedUntil = Math.max(upstream.trustedUntil, now + ANSWERED_MS);
}

/**
 * A connection was not accepted: somebody else may have the address from now on, unless it is confirmed for a later
 * moment. How fresh the last confirmation is does not matter, since it is older.
 */
export function noteUnanswered(upstream: Trust, { code = '' }: NodeJS.ErrnoException, now: number): void {
  if (!upstream.isPod || OF_THIS_MACHINE.has(code)) return;
  upstream.doubtedAt = now;
  upstream.trustedUntil = -Infinity;
}

/** To be called at an interval: without confirmations, it connects each time, so that a gap is noticed. */
export function proveAddress(upstream: Provable, now: number, { probeMs }: Pick<IngressLimits, 'probeMs'>): void {
  const { isPod, references, confirmedAt } = upstream;
  if (!isPod || references === 0 || now - confirmedAt <= UNCONFIRMED_MS) return;
  if (upstream.isProbed || now - upstream.probedAt < PROVE_EVERY_MS || !isTrusted(upstream, now)) return;
  tryConnection(upstream, now, probeMs, () => undefined);
}

/** A connection without a request. @param ended with what has come instead of it, or null */
export function tryConnection(
  upstream: Provable,
  now: number,
  withinMs: number,
  ended: (error: NodeJS.ErrnoException | null) => void,
): void {
  upstream.isProbed = true;
  upstream.probedAt = now;
  const finish = (error: NodeJS.ErrnoException | null): void => {
    clearTimeout(late);
    upstream.isProbed = false;
    if (error === null) noteAnswered(upstream, performance.now());
    else noteUnanswered(upstream, error, performance.now());
    ended(error);
  };
  const abandon = connectInto(upstream.location, upstream.port, {
    onConnected(socket) {
      socket.on('error', () => undefined).destroy();
      finish(null);
    },
    onFailed: finish,
  });
  const late = setTimeout(() => {
    abandon();
    finish(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
  }, withinMs).unref();
}
