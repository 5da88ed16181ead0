// The address of what runs behind a host name of the platform (docs/decisions/0019-preview-urls.md).
import type { Config } from '../../../core/config';

type UrlSettings = Pick<Config, 'ingressPort' | 'ingressTlsPort' | 'ingressCertFile'>;

const USUAL_PORTS = { http: 80, https: 443 };

/**
 * The address without a path: https where the ingress has TLS and a certificate for the names below APPS_DOMAIN, else
 * http. The port stands in it where it is not the usual one.
 * @param hostname of an application or a preview
 */
export function applicationUrl(config: UrlSettings, hostname: string): string {
  const secure = config.ingressTlsPort !== null && config.ingressCertFile !== null;
  return secure ? addressOf('https', hostname, config.ingressTlsPort) : addressOf('http', hostname, config.ingressPort);
}

function addressOf(scheme: keyof typeof USUAL_PORTS, hostname: string, port: number | null): string {
  return port === USUAL_PORTS[scheme] ? `${scheme}://${hostname}` : `${scheme}://${hostname}:${port}`;
}
