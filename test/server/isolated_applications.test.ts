// Projects on networks of their own, as an ordinary user. As root see
// test/engines/deployments/isolated_applications.test.ts.
import { spawnSync } from 'node:child_process';
import { isolatedCases } from '../support/deployments/isolated_cases';

const isRoot = process.getuid?.() === 0;
const hasNamespaces = spawnSync('unshare', ['-Urn', 'nft', 'list', 'ruleset']).status === 0;
const asUser = !isRoot && hasNamespaces ? describe : describe.skip;

asUser('projects on networks of their own, as an ordinary user', () => {
  isolatedCases('10.245.0.0/24');
});
