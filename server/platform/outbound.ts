// The client for addresses that users configure. A probe uses it too, so it loads no drivers but by their types.
import { isPublicAddress } from '../../core/protocols/addresses';
import type { Config } from '../../core/config';
import { openOutbound, type Outbound } from '../../core/outbound';
import type { SourceOptions } from '../../drivers/source/git';

/** Outgoing requests of this installation to addresses that users configure. */
export function outboundOf({ allowPrivateAddresses, dnsResolvers, outboundCaFile }: Config): Outbound {
  return openOutbound({
    isAllowed: allowPrivateAddresses ? () => true : isPublicAddress,
    hostsFile: allowPrivateAddresses,
    resolvers: dnsResolvers,
    caFile: outboundCaFile,
  });
}

/** Of repositories that users name. */
export function sourceOptionsOf(config: Config): SourceOptions {
  const { allowHttpGit, allowLocalGit, runtimeDir, sourceSizeMb } = config;
  const outbound = outboundOf(config);
  return { directory: runtimeDir, sizeMb: sourceSizeMb, allowHttpGit, allowLocalGit, outbound };
}
