// The user ids of this installation's tenants. Only root has users to give.
import { join } from 'node:path';
import type { Config } from '../../core/config';
import { hasEntries } from '../../core/directory';
import { StartupError } from '../../core/startup_error';
import type { Platform } from '../platform/platform';
import { DriverError } from '../../core/driver';
import { FIRST_USER_ID, claimUserIds } from '../../drivers/runtime/sandbox/user_ids';

/** @returns the first one. @throws StartupError where TENANT_UID_BASE names ids of another installation */
export async function tenantUserIds(
  { runtimeDir, databaseDir, volumeDir, tenantUidBase }: Config,
  log: Platform['log'],
) {
  const unclaimed = tenantUidBase ?? FIRST_USER_ID;
  if (process.getuid?.() !== 0) return unclaimed;
  const isUsed = [join(runtimeDir, 'releases'), databaseDir, volumeDir].some(hasEntries);
  try {
    const { base, sharedWith } = await claimUserIds({ directory: runtimeDir, base: tenantUidBase, isUsed });
    if (sharedWith) log.warn({ directory: sharedWith }, 'tenants of another installation have the same user ids');
    return base;
  } catch (error) {
    if (error instanceof DriverError) throw new StartupError(error.message);
    // The root of a container may be read-only: then its users are its own.
    log.warn({ err: error }, 'user ids of tenants are not claimed on this host');
    return unclaimed;
  }
}
