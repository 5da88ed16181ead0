// Requests for the platform itself: over HTTPS alone, and without loss while a server of the platform restarts.
import { countIn } from '../client_share';
import type { IngressState } from '../ingress_state';
import { fixedPage, servicePage, type Page } from '../pages';
import { isPlainHost, overload, type Service } from '../platform_services';
import { hasCertificate } from '../tls_contexts';
import type { Site } from '../route_table';
import { callerOf } from './forwarded_head';
import { beginProxying, chooseInstance, type InboundRequest, type ProxiedRequest } from './proxied_request';
import { sendPage } from './response';

const HTTPS_DEFAULT = 443;

/** @param address the host as the visitor wrote it, and without its port */
export function serveService(
  ingress: IngressState,
  inbound: InboundRequest,
  site: Site,
  address: Pick<ProxiedRequest, 'authority' | 'host' | 'target'>,
): void {
  const service = site.service as Service;
  const caller = callerOf(inbound.request, address.authority, inbound.listener, ingress.trustProxy);
  // The server believes one address: that of the visitor.
  const proxied = beginProxying(ingress, inbound, { site, caller: { ...caller, chain: caller.address }, ...address });
  const reason = overload(site, caller.address, ingress.limits);
  if (reason !== null) return sendPage(proxied, servicePage(reason, service.served));
  proxied.isCounted = true;
  countIn(site.application, caller.address);
  if (caller.scheme === 'https') return chooseInstance(proxied);
  const has = hasCertificate(ingress.certificates, address.host);
  if (typeof has === 'boolean') return servePlain(proxied, service, has);
  void has.then((found) => void (proxied.closed || servePlain(proxied, service, found)));
}

function servePlain(proxied: ProxiedRequest, service: Service, isCertified: boolean): void {
  const { request, ingress, host, target } = proxied;
  // A redirect would come back here, again and again.
  if (ingress.trustProxy === 0 && /^https$/i.test(String(request.headers['x-forwarded-proto'] ?? '')))
    return sendPage(proxied, fixedPage('untrusted_proxy'));
  if (!isCertified)
    return isPlainHost(service, host) ? chooseInstance(proxied) : sendPage(proxied, fixedPage('no_certificate'));
  const { port } = service.served;
  const origin = `https://${host}${port === HTTPS_DEFAULT ? '' : `:${port}`}`;
  sendPage(proxied, MOVED, { Location: `${origin}${target === '*' ? '/' : target}` });
}

const MOVED: Page = {
  status: 308,
  reason: 'https',
  title: 'Moved to https',
  detail: 'This address is served over https.',
};
