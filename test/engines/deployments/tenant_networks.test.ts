/** @tier heavy @quarter 1 @covers drivers/network */
// Networks of projects, as root: by namespaces, pairs of interfaces and rules of the packet filter.
import { forwardedPortCases } from '../../support/ingress/forwarded_cases';
import { networkCases } from '../../support/networks/network_cases';
import { networkHostTableCases } from '../../support/networks/network_host_table';
import { networkKillCases } from '../../support/networks/network_killed';
import { networkMemberCases } from '../../support/networks/network_members';
import { networkOutsideCases, userNetworkOutsideCases } from '../../support/networks/network_outside';
import { publishedPortCases } from '../../support/contract/published_cases';

const asRoot = process.getuid?.() === 0 ? describe : describe.skip;

asRoot('networks of projects, as root', () => {
  networkCases();
  networkKillCases();
  networkMemberCases();
});

asRoot('ports of databases in networks of projects, as root', () => {
  publishedPortCases();
  describe('led to by the kernel', forwardedPortCases);
});

asRoot('rules of the host for networks of projects', () => {
  networkHostTableCases();
});

asRoot('the way out of networks of projects', () => {
  networkOutsideCases();
});

asRoot('the way out of networks of an ordinary user who may use /dev/net/tun', () => {
  userNetworkOutsideCases();
});
