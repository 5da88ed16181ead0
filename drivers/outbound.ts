// What goes out to addresses that users give: checks of observers and messages of notifiers. A name is resolved once,
// its addresses are judged, and the connection is made to one of them; a second answer of the DNS can't lead elsewhere.
import { readFileSync } from 'node:fs';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { isIP } from 'node:net';
import { bareHost } from '../core/addresses';
import { openNames, type Names } from './outbound/names';
import { OutboundError } from './outbound/trace';

export interface OutboundRules {
  /** Which addresses may be connected to; core/addresses.ts, or all with ALLOW_PRIVATE_ADDRESSES. */
  isAllowed(address: string): boolean;
  /** Names that the DNS does not know are looked for in the hosts file. */
  hostsFile: boolean;
  /** DNS_RESOLVERS; empty: those of the system. */
  resolvers: readonly string[];
  /** OUTBOUND_CA_FILE: roots to trust besides the usual ones. */
  caFile: string | null;
}

export interface Outbound {
  readonly names: Names;
  /** @throws OutboundError where one of the addresses of a host may not be connected to */
  requireAllowed(host: string, addresses: readonly string[]): void;
  /** Shared by all connections: to make one reads every root. */
  secureContext(): SecureContext;
}

export function openOutbound({ isAllowed, hostsFile, resolvers, caFile }: OutboundRules): Outbound {
  let context: SecureContext | undefined;
  return {
    names: openNames({ resolvers, hostsFile }),
    requireAllowed(host, addresses) {
      if (addresses.every(isAllowed)) return;
      const what = isIP(bareHost(host)) ? 'is' : 'leads to';
      throw new OutboundError('dns', `${host} ${what} an address that is not public. Such targets are refused.`, false);
    },
    secureContext: () =>
      (context ??= createSecureContext(caFile ? { ca: [...rootCertificates, readFileSync(caFile, 'utf8')] } : {})),
  };
}
