// Requests for a server of the platform that takes no connection, as while it restarts: nothing of them was sent, so
// they wait for it. How long it is away counts, not how long each of them waits.
import { servicePage } from '../pages';
import type { Service } from '../services';
import type { ProxiedRequest } from './proxied_request';
import { sendPage } from './response';

const RETRY_EVERY_MS = 100;

/** A connection for the request was not made. @param send tries again */
export function waitForService(
  proxied: ProxiedRequest,
  service: Service,
  send: (proxied: ProxiedRequest) => void,
): void {
  const { ingress } = proxied;
  const now = performance.now();
  service.awaySince ??= now;
  const isLong = now - service.awaySince > ingress.limits.serviceAwayMs;
  if (isLong || ingress.closing || service.waiting.size >= ingress.limits.serviceWaiting)
    return refuse(proxied, service);
  service.waiting.add(proxied);
  service.timer ??= setTimeout(() => retry(service, send), RETRY_EVERY_MS);
}

/** A connection was made: whoever waits is sent. */
export function endWaiting(service: Service, send: (proxied: ProxiedRequest) => void): void {
  service.awaySince = null;
  const all = [...service.waiting];
  service.waiting.clear();
  for (const one of all) if (!one.closed) send(one);
}

/** One of them tries for all. */
function retry(service: Service, send: (proxied: ProxiedRequest) => void): void {
  service.timer = undefined;
  for (const one of service.waiting) {
    service.waiting.delete(one);
    if (one.closed) continue;
    send(one);
    break;
  }
  if (service.awaySince === null || service.waiting.size === 0) return;
  const { serviceAwayMs } = firstOf(service).ingress.limits;
  if (performance.now() - service.awaySince <= serviceAwayMs)
    service.timer = setTimeout(() => retry(service, send), RETRY_EVERY_MS);
  else for (const one of service.waiting) (service.waiting.delete(one), refuse(one, service));
}

function firstOf({ waiting }: Service): ProxiedRequest {
  return waiting.values().next().value as ProxiedRequest;
}

function refuse(proxied: ProxiedRequest, { served }: Service): void {
  if (!proxied.closed) sendPage(proxied, servicePage('service_away', served));
}
