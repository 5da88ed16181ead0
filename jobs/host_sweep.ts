// What a host has of rows that are gone: after a restored database, or a crash at the worst moment. Units and files are
// ours by their place and their id, so they are removed.
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from '../core/log';
import type { DriverContext } from '../drivers/driver';
import type { ControlDatabase } from '../db/control_database';
import { endpointsWithoutRow } from '../models/database_endpoint/work';
import { unitsWithoutRow } from '../models/instance_work';
import { unusedArtifacts, withoutApplicationRow } from '../models/retention';
import { removeDirectory } from './deployment/row';
import type { HostDrivers } from './job';

/** Called when the host begins to work, and every hour. @returns how many units and directories went */
export async function sweepHost(
  sql: ControlDatabase,
  host: HostDrivers,
  log: Logger,
  ctx: DriverContext,
): Promise<number> {
  const { runtime, source, directories, endpoints } = host;
  let swept = 0;
  const each = async (kind: string, ids: string[], remove: (id: string) => Promise<void>): Promise<void> => {
    for (const id of ids) {
      if (ctx.signal.aborted) return;
      log.warn({ kind, id }, 'an orphan was removed: its row is gone');
      await remove(id);
      swept += 1;
    }
  };
  // The list is older than the rows: what was begun meanwhile has its row already.
  await each('unit', await unitsWithoutRow(sql, await runtime.list()), (id) => runtime.destroy(id, ctx));
  await each('files', await unusedArtifacts(sql, await namesIn(directories.releases)), (id) =>
    removeDirectory(path.join(directories.releases, id)),
  );
  await each('cache', await withoutApplicationRow(sql, await namesIn(directories.caches)), (id) =>
    removeDirectory(path.join(directories.caches, id)),
  );
  await each('mirror', await withoutApplicationRow(sql, await source.listMirrors(ctx)), (id) =>
    source.removeMirror(id, ctx),
  );
  for (const driver of Object.values(endpoints)) {
    const ids: string[] = [];
    for await (const { owner_id } of driver.list(ctx)) ids.push(owner_id);
    await each('endpoint', await endpointsWithoutRow(sql, ids), (id) => driver.forget(id, ctx));
  }
  return swept;
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? [] : Promise.reject(error),
  );
}
