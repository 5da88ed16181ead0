// Volumes in the bin: files and size stay. Who was attached gets it again, where that is possible.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';
import type { AttachmentToRestore } from '../../applications/application/deleted_volume';
import { wakeWorkloads } from '../../applications/workload';
import type { Bin } from '../../base/bin';
import type { Volume } from '../volume';
import { removeBackupsOfVolume } from '../volume_backup/job_queries';

const APPLICATION = named(
  'select name from applications where id = $1 and project_id = $2 and deleted_at is null for share',
);
const TAKEN = named(`select 1 from volumes where application_id = $1 and mount_path = $2 and deleted_at is null`);

export const volumeBin: Bin<Volume> = {
  nameFormat: 'slug',
  isCharged: true,
  isOnDisk: ({ workloads }) => workloads !== 'kubernetes',
  purge: ({ sql }, { id }) => removeBackupsOfVolume(sql, id),
  async restore(ctx, volume, { attach }) {
    return attach ? [await attachAgain(ctx, volume, attach as AttachmentToRestore)] : [];
  },
};

/** @returns a note */
async function attachAgain(
  ctx: Context,
  volume: Volume,
  { application_id, mount_path }: AttachmentToRestore,
): Promise<string> {
  const [found] = await ctx.sql.query<{ name: string }>(APPLICATION, [application_id, volume.project_id]);
  if (!found) return 'It is not attached any more: the application that had it was deleted.';
  if ((await ctx.sql.query(TAKEN, [application_id, mount_path])).length)
    return `It is not attached: the application \`${found.name}\` has another volume at ${mount_path}.`;
  await wakeWorkloads(ctx, [application_id]);
  const status = volume.status === 'available' ? 'in_use' : volume.status;
  await volume.update(ctx, { application_id, mount_path, status });
  return `It is attached to the application \`${found.name}\` again. Restart the application.`;
}
