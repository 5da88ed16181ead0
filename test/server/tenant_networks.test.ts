// Networks of projects, as an ordinary user: by user namespaces. As root see
// test/engines/deployments/tenant_networks.test.ts.
import { spawnSync } from 'node:child_process';
import { networkCases } from '../support/networks/network_cases';
import { networkKillCases } from '../support/networks/network_killed';
import { publishedPortCases } from '../support/contract/published_cases';

const isRoot = process.getuid?.() === 0;
const hasNamespaces = spawnSync('unshare', ['-Urn', 'nft', 'list', 'ruleset']).status === 0;
const asUser = !isRoot && hasNamespaces ? describe : describe.skip;

asUser('networks of projects, as an ordinary user', () => {
  networkCases();
  networkKillCases();
});

asUser('ports of databases in networks of projects, as an ordinary user', () => {
  publishedPortCases();
});
