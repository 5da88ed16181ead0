// A volume that cannot grow while it is used does so at a restart, between the old instances and the new ones.
import { timeOfId } from '../../../core/ids';
import type { ApplicationStack } from '../../../models/applications/stack';
import { growVolumes, hasVolumesToGrow } from '../../../models/volumes/volume/growth';
import type { JobContext } from '../../job';

/** A restart continues after this time, even if the volume has not grown. */
const WAIT_MAX_MS = 300_000;

/** Whether the instances are to stop, and none to start yet, because a volume of the application grows. */
export async function isPausedForGrowth(
  applicationId: string,
  { status, processes, present }: ApplicationStack,
  ctx: JobContext,
): Promise<boolean> {
  if (status !== 'restarting' && status !== 'starting') return false;
  const releases = processes.flatMap(({ release_id }) => (release_id === null ? [] : [timeOfId(release_id).getTime()]));
  if (Date.now() - Math.max(...releases) > WAIT_MAX_MS) return false;
  if (!(await hasVolumesToGrow(ctx.sql, applicationId))) return false;
  if (present.every(({ candidate }) => candidate)) await growVolumes(ctx.sql, applicationId);
  return true;
}
