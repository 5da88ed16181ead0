// Requests for a server of the platform that takes no connection, as while it restarts: nothing of them was sent, so
// they wait for it. How long it is away counts, not how long each of them waits.
import { addressBlock } from '../../../core/protocols/addresses';
import { servicePage } from '../pages';
import type { Service } from '../platform_services';
import type { ProxiedRequest } from './proxied_request';
import { isRepeatable } from './repeatable';
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
  if (isLong || !hasPlace(proxied, service)) return refuse(proxied, service);
  if (!proxied.hasWaited) service.waited += 1;
  proxied.hasWaited = true;
  service.waiting.add(proxied);
  service.timer ??= setTimeout(() => retry(service, send), RETRY_EVERY_MS);
}

/** Half of the places are for whoever comes first; of the others, one client gets no more than a tenth of all. */
function hasPlace({ ingress, caller, hasWaited }: ProxiedRequest, { waiting }: Service): boolean {
  const { serviceWaiting } = ingress.limits;
  if (waiting.size >= serviceWaiting) return false;
  if (hasWaited || waiting.size < serviceWaiting / 2) return true;
  const block = addressBlock(caller.address);
  const own = [...waiting].filter((one) => addressBlock(one.caller.address) === block);
  return own.length < serviceWaiting / 10;
}

/** The server ended while it worked on the request. @param hasBegun to answer it */
export function loseService(
  proxied: ProxiedRequest,
  service: Service,
  hasBegun: boolean,
  send: (proxied: ProxiedRequest) => void,
): void {
  if (hasBegun || !isRepeatable(proxied) || proxied.resending)
    return sendPage(proxied, servicePage('service_lost', service.served));
  proxied.resending = true;
  waitForService(proxied, service, send);
}

/** A connection was made: whoever waits is sent. */
export function endWaiting(
  { ingress }: Pick<ProxiedRequest, 'ingress'>,
  service: Service,
  send: (proxied: ProxiedRequest) => void,
): void {
  const { awaySince, waited, refused, served } = service;
  if (awaySince === null) return;
  const awayMs = performance.now() - awaySince;
  ingress.parts.serviceIsBack?.({ name: served.name, awayMs, waited, refused });
  Object.assign(service, { awaySince: null, waited: 0, refused: 0 });
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
  else refuseAll(service);
}

function refuseAll(service: Service): void {
  const all = [...service.waiting];
  service.waiting.clear();
  for (const one of all) refuse(one, service);
}

function firstOf({ waiting }: Service): ProxiedRequest {
  return waiting.values().next().value as ProxiedRequest;
}

function refuse(proxied: ProxiedRequest, service: Service): void {
  if (proxied.closed) return;
  service.refused += 1;
  sendPage(proxied, servicePage('service_away', service.served));
}
