// Whether the service runs, and whether its ingress serves the new name with a valid certificate.
import { isIPv6 } from 'node:net';
import type { Config } from '../../core/config';
import { own } from '../../core/outbound/client';

const WITHIN = { ms: 5_000, of: 'response' } as const;
/** Of an ingress that has no certificate for the name yet. */
const NO_CERTIFICATE = new Set(['ECONNRESET', 'EPROTO', 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME']);
const NOT_TRUSTED = 'is of an authority that browsers do not trust';
const UNTRUSTED = /^(?:UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_UNTRUSTED)/;

/** Whether waiting changes nothing: the chain is complete, and ends at a root that nobody knows. */
export function isUntrusted(problem: string): boolean {
  return problem.includes(NOT_TRUSTED);
}

/** null when the process of the API is ready, else why not. */
export async function apiProblem({ host, port }: Pick<Config, 'host' | 'port'>): Promise<string | null> {
  const everywhere = host === '0.0.0.0' || host === '::';
  const name = everywhere ? '127.0.0.1' : isIPv6(host) ? `[${host}]` : host;
  const answer = await own(`http://${name}:${port}/readyz`, { within: WITHIN }).catch(() => null);
  if (!answer) return 'it does not answer';
  const { reasons = [] } = (await answer.json().catch(() => ({}))) as { reasons?: string[] };
  return answer.ok ? null : reasons.join(', ') || `it answers with status ${answer.status}`;
}

/**
 * null when the API answers at the name over HTTPS with a chain that is valid, else why not.
 * @param roots PEM, additional trusted roots
 */
export async function httpsProblem(
  { ingressListen, ingressTlsPort }: Pick<Config, 'ingressListen' | 'ingressTlsPort'>,
  name: string,
  roots: string | null,
): Promise<string | null> {
  const address = { '0.0.0.0': '127.0.0.1', '::': '127.0.0.1' }[ingressListen] ?? ingressListen;
  const at = { hostname: address, port: ingressTlsPort ?? 443 };
  const request = { within: WITHIN, ca: roots, redirects: 'returned' } as const;
  try {
    const answer = await own(`https://${name}/readyz`, request, at);
    await answer.body?.cancel();
    return answer.status === 200 ? null : `https://${name} answers with status ${answer.status}`;
  } catch (error) {
    return reasonOf(error as NodeJS.ErrnoException, name);
  }
}

function reasonOf({ code = '', name: kind, message }: NodeJS.ErrnoException, name: string): string {
  if (kind === 'TimeoutError') return `https://${name} does not answer in time`;
  if (code === 'ECONNREFUSED') return `nothing listens on the port of TLS`;
  if (NO_CERTIFICATE.has(code) || code.startsWith('ERR_SSL')) return `there is no certificate for ${name} yet`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `there is no certificate for ${name} yet`;
  if (UNTRUSTED.test(code)) return `the certificate of ${name} ${NOT_TRUSTED} (${code}); --acme-ca names its root`;
  return `the certificate of ${name} is not valid (${code || message})`;
}
