// The disk of a unit: its copy and its /tmp lie in a file system of its disk size, if the host supports that. Otherwise
// its disk usage is measured (monitor.ts).
import { symlink } from 'node:fs/promises';
import path from 'node:path';
import { DriverError, unboundedContext } from '../../../core/driver';
import { removeTree } from '../../../core/process/remove_tree';
import type { UnitSpec } from '../../runtime';
import { closeDisk, makeDisk } from '../../volume/limited_disk';
import type { RuntimeHost } from '../host_probe';

/** @returns the directory for its copy and its /tmp: the mount point of a new disk, or `draft`. @throws DriverError */
export async function makeDiskFor(host: RuntimeHost, draft: string, spec: UnitSpec): Promise<string> {
  const { disk_mb } = spec.limits;
  if (!host.hardDisks || disk_mb === null || spec.kind !== 'service') return draft;
  const disk = await makeDisk(draft, disk_mb * 2 ** 20, 'lost', unboundedContext());
  for (const name of ['files', 'tmp']) await symlink(path.join(path.basename(disk), name), path.join(draft, name));
  return disk;
}

const removals = new Map<string, Promise<void>>();

/** A run directory under a temporary name. @throws DriverError transient while its disk is in use */
export function removeRunTree(tree: string): Promise<void> {
  // Two at a time would take each other's step for something foreign.
  const removal =
    removals.get(tree) ??
    closeDisk(tree, unboundedContext())
      .then(() => removeTree(tree))
      .finally(() => removals.delete(tree));
  removals.set(tree, removal);
  return removal;
}

/** @throws DriverError invalid where a copy into a disk has failed for want of room */
export function requireRoomOnDisk(error: unknown, { disk_mb }: UnitSpec['limits']): void {
  if (!(error instanceof DriverError) || error.reason !== 'capacity') return;
  throw new DriverError(
    'invalid',
    `The files of the application do not fit on the disk of an instance, which has ${disk_mb ?? 0} MB. ` +
      'Choose a larger size, or leave out of the build what the application does not need.',
  );
}
