// What /readyz says: whether this process should get requests.
import { pendingMigrations } from '../../db/migrate';
import { MIGRATIONS, type Platform } from '../platform/platform';

export interface Readiness {
  /** Why the process should get none, whatever the database says. */
  missing: 'starting' | 'draining' | null;
}

const LAG_SECONDS_MAX = 60;

/** Empty when it is ready. */
export async function reasonsNotReady(platform: Platform, { missing }: Readiness): Promise<string[]> {
  if (missing !== null) return [missing];
  try {
    const pending = await pendingMigrations(platform.database, MIGRATIONS);
    const lag = await platform.workerLag();
    return [
      ...(pending.length ? ['migrations are pending'] : []),
      ...(lag > LAG_SECONDS_MAX ? ['the worker lags behind'] : []),
    ];
  } catch {
    return ['the database does not answer'];
  }
}
