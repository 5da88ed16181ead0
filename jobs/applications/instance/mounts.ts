// Volumes of an application, as its units get them.
import { stat } from 'node:fs/promises';
import type { Sql } from '../../../core/context';
import { DriverError } from '../../../core/driver';
import type { UnitSpec } from '../../../drivers/runtime';
import { attachedVolumes } from '../../../models/applications/instance_work';

/** @throws DriverError `transient` while one of them is not ready, for instance after the host has started again */
export async function requireMounts(sql: Sql, applicationId: string): Promise<UnitSpec['mounts']> {
  const volumes = await attachedVolumes(sql, applicationId);
  return Promise.all(
    volumes.map(async ({ name, mount_path, path }) => {
      // The directory lies inside the mounted file system, so it exists only while the volume is mounted.
      const ready = path !== null && (await stat(path).catch(() => null))?.isDirectory();
      if (!ready) throw new DriverError('transient', `The volume ${name} is not ready.`);
      return { source: path, target: mount_path };
    }),
  );
}
