// Databases in networks of projects, as an ordinary user. As root see
// test/engines/deployments/isolated_databases.test.ts.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describeEngine } from '../support/databases/database_hall';
import { isolatedDatabaseCases } from '../support/databases/isolated_databases';

const isRoot = process.getuid?.() === 0;
const hasNamespaces = spawnSync('unshare', ['-Urn', 'nft', 'list', 'ruleset']).status === 0;
const isPossible = hasNamespaces && (process.env.CI || existsSync('/usr/sbin/pgbouncer'));
const asUser = !isRoot && isPossible ? describe : describe.skip;

describeEngine('postgresql', () =>
  asUser('in networks of projects, as an ordinary user', () => isolatedDatabaseCases('10.244.1.')),
);
