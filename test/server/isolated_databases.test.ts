// Databases in networks of projects, as an ordinary user. As root see
// test/engines/deployments/isolated_databases.test.ts.
import { spawnSync } from 'node:child_process';
import { describeEngine } from '../support/databases/database_hall';
import { isolatedDatabaseCases } from '../support/databases/isolated_databases';
import { needs } from '../support/runner/programs';

const isRoot = process.getuid?.() === 0;
const hasNamespaces = spawnSync('unshare', ['-Urn', 'nft', 'list', 'ruleset']).status === 0;
const asUser = !isRoot && hasNamespaces ? needs('pgbouncer').describe : describe.skip;

describeEngine('postgresql', () =>
  asUser('in networks of projects, as an ordinary user', () => isolatedDatabaseCases('10.244.1.')),
);
