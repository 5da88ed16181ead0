// Volumes of an application, as its units get them.
import { stat } from 'node:fs/promises';
import type { Sql } from '../../../core/context';
import { DriverError } from '../../../core/driver';
import type { UnitSpec } from '../../../drivers/runtime';
import { CLUSTER_VOLUMES } from '../../../drivers/volume';
import { attachedVolumes } from '../../../models/applications/instance_work';

/** @throws DriverError `transient` while one of them is not ready, for instance after the host has started again */
export async function requireMounts(sql: Sql, applicationId: string): Promise<UnitSpec['mounts']> {
  const attached = await attachedVolumes(sql, applicationId);
  // Commands on this host run without what is in a cluster.
  const volumes = attached.filter(({ driver }) => driver !== CLUSTER_VOLUMES);
  return Promise.all(
    volumes.map(async ({ name, mount_path, path }) => {
      // The directory lies inside the mounted file system, so it exists only while the volume is mounted.
      const ready = path !== null && (await stat(path).catch(() => null))?.isDirectory();
      if (!ready) throw new DriverError('transient', `The volume ${name} is not ready.`);
      return { source: path, target: mount_path };
    }),
  );
}

/** Whether the application has a volume on this machine, which pods would not reach. Previews have no volumes. */
export async function hasVolumeOfMachine(
  sql: Sql,
  { application_id, preview_id }: { application_id: string; preview_id: string | null },
): Promise<boolean> {
  if (preview_id !== null) return false;
  const attached = await attachedVolumes(sql, application_id);
  return attached.some(({ driver }) => driver !== null && driver !== CLUSTER_VOLUMES);
}
