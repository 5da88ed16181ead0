// Removes leftovers of deleted rows from a host, as after a restored database or a crash at the worst moment. Units and
// files are known to belong to the platform by path and id. Kinds declare their leftovers (jobs/declarations.ts).
import type { Logger } from '../core/log/log';
import type { ControlDatabase } from '../db/control_database';
import { DriverError, type DriverContext } from '../core/driver';
import { unitsWithoutOwner } from '../models/applications/unit_owner';
import type { Leftovers } from './declarations';
import type { Drivers, HostDrivers } from './job';
import { allLeftovers, unitOwners } from './all_jobs';

/** Called when the host begins to work, and every hour. @returns how many units and directories went */
export async function sweepHost(
  sql: ControlDatabase,
  host: HostDrivers,
  log: Logger,
  ctx: DriverContext,
  kinds: readonly Leftovers[] = allLeftovers(),
): Promise<number> {
  let swept = 0;
  const each = async (kind: string, ids: string[], remove: (id: string) => Promise<void>): Promise<void> => {
    for (const id of ids) {
      if (ctx.signal.aborted) return;
      try {
        await remove(id);
      } catch (error) {
        if (!(error instanceof DriverError)) throw error;
        // What cannot be removed keeps nothing else from it.
        log.warn({ kind, id, err: error }, 'an orphan could not be removed: its row is gone');
        continue;
      }
      log.warn({ kind, id }, 'an orphan was removed: its row is gone');
      swept += 1;
    }
  };
  // The list is older than the rows: units that were started meanwhile have their row already.
  const units = await unitsWithoutOwner(sql, unitOwners(), await host.runtime.list());
  await each('unit', units, (id) => host.runtime.destroy(id, ctx));
  const drivers = { host } as Drivers;
  const sweepKind = async ({ kind, list, withoutRow, remove }: Leftovers): Promise<void> => {
    if (!remove) return;
    for await (const batch of list(drivers, ctx)) {
      const ids = batch.map(({ id }) => id);
      await each(kind, await withoutRow(sql, ids), (id) => remove(id, host, ctx));
    }
  };
  for (const leftovers of kinds)
    await sweepKind(leftovers).catch((error: unknown) => {
      if (!(error instanceof DriverError)) throw error;
      log.warn(
        { kind: leftovers.kind, err: error },
        'orphans of this kind could not be listed: the next sweep tries again',
      );
    });
  return swept;
}
