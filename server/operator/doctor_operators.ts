// Whether somebody is an operator of the installation, who sees its pages in the dashboard.
import type { Config } from '../../core/config';
import { missingOperator } from '../../core/catalog/missing_operator';
import { pendingMigrations } from '../../db/migrate';
import { countOperators } from '../../models/identity/operator';
import { MIGRATIONS } from '../platform/platform';
import { isMade, withDatabase } from './doctor_database';
import type { Finding } from './finding';

/** Nothing before the first start has made one, and nothing on a schema that does not know them yet. */
export async function operators(config: Config): Promise<Finding[]> {
  if (!isMade(config)) return [];
  return withDatabase(config, async (database) => {
    if ((await pendingMigrations(database, MIGRATIONS)).length) return [];
    const count = await countOperators(database);
    return count ? [] : [{ check: 'operators', status: 'warning', detail: missingOperator() }];
  });
}
