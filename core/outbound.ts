// The guard of all addresses that users give: observers, notifiers, repositories, images, origins, mail. A name is
// resolved once, its addresses are judged, and the connection is made to one of them; a second answer of the DNS can't
// lead elsewhere.
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { isIP } from 'node:net';
import { bareHost } from './protocols/addresses';
import type { Roots } from './outbound/certificate_path';
import { openNames, type Names } from './outbound/names';
import { ForbiddenAddress } from './outbound/trace';

export interface OutboundRules {
  /** Which addresses may be connected to; core/protocols/addresses.ts, or all with ALLOW_PRIVATE_ADDRESSES. */
  isAllowed(address: string): boolean;
  /** Names that the DNS does not know are looked for in the hosts file. */
  hostsFile: boolean;
  /** DNS_RESOLVERS; empty: those of the system. */
  resolvers: readonly string[];
  /** OUTBOUND_CA_FILE: roots to trust besides the usual ones. */
  caFile: string | null;
}

const NAME_WITHIN_MS = 1_000;

export interface Outbound {
  readonly names: Names;
  /** Whether an address, already resolved, may be connected to. */
  isAllowed(address: string): boolean;
  /** @throws OutboundError where one of the addresses of a host may not be connected to */
  requireAllowed(host: string, addresses: readonly string[]): void;
  /**
   * The same of what the DNS says of a host, as long as that takes a second at most: for states that are shown. Each
   * connection is judged by itself. @throws OutboundError
   */
  requireAllowedName(host: string): Promise<void>;
  /** Shared by all connections: to make one reads every root. */
  secureContext(): SecureContext;
  /** The roots of that context. */
  roots(): Roots;
}

export function openOutbound({ isAllowed, hostsFile, resolvers, caFile }: OutboundRules): Outbound {
  let context: SecureContext | undefined;
  let roots: Roots | undefined;
  const names = openNames({ resolvers, hostsFile });
  const requireAllowed = (host: string, addresses: readonly string[]): void => {
    if (addresses.every(isAllowed)) return;
    const what = isIP(bareHost(host)) ? 'is' : 'leads to';
    throw new ForbiddenAddress(`${host} ${what} an address that is not public. Such targets are refused.`);
  };
  return {
    names,
    isAllowed,
    requireAllowed,
    async requireAllowedName(host) {
      const late = new Promise<string[]>((resolve) => setTimeout(resolve, NAME_WITHIN_MS, []).unref());
      // Without an answer nobody can tell.
      const known = names.resolve(host).catch(() => []);
      requireAllowed(host, await Promise.race([known, late]));
    },
    secureContext: () =>
      (context ??= createSecureContext(caFile ? { ca: [...rootCertificates, readFileSync(caFile, 'utf8')] } : {})),
    roots: () => (roots ??= bySubject([...rootCertificates, ...(caFile ? certificatesIn(caFile) : [])])),
  };
}

function certificatesIn(file: string): string[] {
  return readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

function bySubject(roots: readonly string[]): Roots {
  const found = new Map<string, X509Certificate[]>();
  for (const pem of roots) {
    const root = new X509Certificate(pem);
    found.set(root.subject, [...(found.get(root.subject) ?? []), root]);
  }
  return found;
}
