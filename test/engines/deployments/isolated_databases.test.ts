/** @tier heavy @quarter 1 @covers drivers/network drivers/hosted_server */
// Databases in networks of projects, as root. As an ordinary user see test/server/isolated_databases.test.ts.
import { existsSync } from 'node:fs';
import { describeEngine } from '../../support/databases/database_hall';
import { isolatedDatabaseCases } from '../../support/databases/isolated_databases';

const isPossible = process.getuid?.() === 0 && (process.env.CI || existsSync('/usr/sbin/pgbouncer'));
const describeIsolated = isPossible ? describe : describe.skip;

describeEngine('postgresql', () =>
  describeIsolated('in networks of projects, as root', () => isolatedDatabaseCases('10.244.0.')),
);
