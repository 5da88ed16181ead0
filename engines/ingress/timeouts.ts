// Enforces all timeouts at an interval. One timer costs less than one per request.
import { isLost, leaveLostInstance } from './http/failover';
import { failConnecting, type ProxiedRequest } from './http/proxied_request';
import { proveAddress } from './confirmation';
import type { IngressState } from './ingress_state';
import { fixedPage } from './pages';
import { failRequest } from './http/response';
import { probeInstance } from './reachability';
import { pruneTable } from './route_table';
import { endIdleVisitors } from './http/simple_connection';
import { endTunnel, type Tunnel } from './http/tunnel';

export function enforceTimeouts(ingress: IngressState): void {
  const now = performance.now();
  for (const proxied of ingress.running) {
    enforceTimeout(proxied, now - proxied.touchedMs);
    leaveLostInstance(proxied, now);
  }
  for (const tunnel of ingress.tunnels) if (isOver(tunnel, now)) endTunnel(tunnel);
  for (const upstream of ingress.table.upstreams.values()) {
    if (upstream.unreachableSince !== null) probeInstance(upstream, now, ingress.limits);
    proveAddress(upstream, now, ingress.limits);
  }
  endIdleVisitors(ingress, now);
  pruneTable(ingress.table, now);
}

// The side that has to send the next byte has timed out.
function enforceTimeout(proxied: ProxiedRequest, silentMs: number): void {
  const { limits } = proxied.ingress;
  const { response, request, connection, site } = proxied;
  const clientIdleMs = site.service === null ? limits.clientIdleMs : limits.serviceClientIdleMs;
  if (proxied.ended || response.writableNeedDrain) return silentMs > clientIdleMs ? endSlowClient(proxied) : undefined;
  if (connection === null) return; // waiting for a certificate look-up, or about to close
  if (connection.socket === null) return silentMs > limits.connectMs ? failConnecting(proxied) : undefined;
  if (proxied.body === 'flowing' && !request.isPaused() && !proxied.answered) {
    proxied.uploadMs += limits.sweepMs;
    const isSlow = silentMs > clientIdleMs || (site.service === null && isTrickling(proxied));
    return isSlow ? failRequest(proxied, fixedPage('slow_client')) : undefined;
  }
  if (silentMs > allowedSilenceMs(proxied)) failRequest(proxied, fixedPage('timeout'));
}

function isOver({ touchedMs, proxied }: Tunnel, now: number): boolean {
  const { upstream, ingress } = proxied;
  if (upstream !== null && isLost(upstream, now, ingress.limits.connectMs)) return true;
  const { tunnelIdleMs, serviceTunnelIdleMs } = ingress.limits;
  return now - touchedMs > (proxied.site.service === null ? tunnelIdleMs : serviceTunnelIdleMs);
}

/** A response that has begun may be a stream: the request timeout does not limit pauses within it. */
function allowedSilenceMs({ answered, site, ingress: { limits } }: ProxiedRequest): number {
  const { request_timeout_ms } = site.route;
  return answered ? Math.max(request_timeout_ms, limits.streamIdleMs) : request_timeout_ms;
}

function isTrickling({ uploadMs, receivedBytes, ingress: { limits } }: ProxiedRequest): boolean {
  return uploadMs > limits.uploadGraceMs + (receivedBytes / limits.uploadBytesPerSecond) * 1000;
}

function endSlowClient(proxied: ProxiedRequest): void {
  proxied.reason ??= 'slow_client';
  proxied.response.destroy();
}
