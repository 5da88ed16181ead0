/** @tier heavy @quarter 1 @covers drivers/network drivers/hosted_server */
// Databases in networks of projects, as root. As an ordinary user see test/server/isolated_databases.test.ts.
import { describeEngine } from '../../support/databases/database_hall';
import { isolatedDatabaseCases } from '../../support/databases/isolated_databases';
import { needs } from '../../support/runner/programs';

const describeIsolated = process.getuid?.() === 0 ? needs('pgbouncer').describe : describe.skip;

describeEngine('postgresql', () =>
  describeIsolated('in networks of projects, as root', () => isolatedDatabaseCases('10.244.0.')),
);
