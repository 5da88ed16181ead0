// What /readyz says: whether this process should get requests.
import { pendingMigrations } from '../../db/migrate';
import { MIGRATIONS, type Platform } from '../platform/platform';

export interface Readiness {
  /** Why the process should get none, whatever the database says. */
  missing: 'starting' | 'draining' | null;
}

/** Empty when it is ready. Not the lag of the worker: this process can serve, whoever works. */
export async function reasonsNotReady(platform: Platform, { missing }: Readiness): Promise<string[]> {
  if (missing !== null) return [missing];
  try {
    const pending = await pendingMigrations(platform.database, MIGRATIONS);
    return pending.length ? ['migrations are pending'] : [];
  } catch {
    return ['the database does not answer'];
  }
}
