// Requests at an instance whose machine is lost: another instance gets those that may be repeated, the others end.
import { fixedPage } from '../pages';
import { isElsewhere } from '../confirmation';
import { probeInstance } from '../reachability';
import { destroyConnection, type Upstream, type UpstreamConnection } from '../upstream';
import { chooseInstance, failConnecting, type ProxiedRequest } from './proxied_request';
import { isRepeatable } from './repeatable';
import { failRequest, releaseUpstream } from './response';

/** To be called at an interval. */
export function leaveLostInstance(proxied: ProxiedRequest, now: number): void {
  const { upstream, connection, ingress, touchedMs } = proxied;
  if (upstream === null || connection === null || proxied.ended || !isElsewhere(upstream.location)) return;
  if (now - touchedMs <= ingress.limits.silentMs) return;
  probeInstance(upstream, now, ingress.limits);
  if (upstream.unreachableSince === null) return;
  if (hasOther(proxied, upstream)) {
    // Nothing was sent.
    if (connection.socket === null) return failConnecting(proxied);
    if (!proxied.answered && !connection.receivedBytes && isRepeatable(proxied))
      return moveToAnother(proxied, upstream, connection);
  }
  if (touchedMs < upstream.unreachableSince && isLost(upstream, now, ingress.limits.connectMs))
    failRequest(proxied, fixedPage('timeout'));
}

/** Unreachable for so long that what is under way there is given up. */
export function isLost({ unreachableSince }: Upstream, now: number, afterMs: number): boolean {
  return unreachableSince !== null && now - unreachableSince > afterMs;
}

function moveToAnother(proxied: ProxiedRequest, upstream: Upstream, connection: UpstreamConnection): void {
  destroyConnection(connection);
  releaseUpstream(proxied);
  proxied.tried.push(upstream);
  chooseInstance(proxied);
}

function hasOther({ site, tried }: ProxiedRequest, upstream: Upstream): boolean {
  return site.upstreams.some(
    (other) => other !== upstream && other.unreachableSince === null && !other.drained && !tried.includes(other),
  );
}
