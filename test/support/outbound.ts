// The guard of addresses, as with ALLOW_PRIVATE_ADDRESSES and without it.
import { openOutbound } from '../../core/outbound';
import { isPublicAddress } from '../../core/protocols/addresses';

export const anyAddress = openOutbound({ isAllowed: () => true, hostsFile: true, resolvers: [], caFile: null });
export const publicAddresses = openOutbound({
  isAllowed: isPublicAddress,
  hostsFile: false,
  resolvers: [],
  caFile: null,
});
