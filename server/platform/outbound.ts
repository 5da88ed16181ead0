// The client for addresses that users configure. A probe uses it too, so it loads no drivers.
import { isPublicAddress } from '../../core/protocols/addresses';
import type { Config } from '../../core/config';
import { openOutbound, type Outbound } from '../../core/outbound';

/** Outgoing requests of this installation to addresses that users configure. */
export function outboundOf({ allowPrivateAddresses, dnsResolvers, outboundCaFile }: Config): Outbound {
  return openOutbound({
    isAllowed: allowPrivateAddresses ? () => true : isPublicAddress,
    hostsFile: allowPrivateAddresses,
    resolvers: dnsResolvers,
    caFile: outboundCaFile,
  });
}
