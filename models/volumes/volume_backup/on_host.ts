// Backups are taken of volumes on the machine of the platform. Those of a cluster are disks of its storage class.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { named } from '../../../db/statement';

const DRIVER = named('select driver from volumes where id = $1');

/** @throws engine_unavailable for a volume of a cluster */
export async function requireVolumeOnHost(ctx: Context, volumeId: string): Promise<void> {
  const [row] = await ctx.sql.query<{ driver: string | null }>(DRIVER, [volumeId]);
  requireHostDriver(ctx, row?.driver ?? null);
}

/** @param driver null: that of new volumes. @throws engine_unavailable */
export function requireHostDriver({ config }: Pick<Context, 'config'>, driver: string | null): void {
  if ((driver ?? config.workloads) !== 'kubernetes') return;
  throw problem(
    'engine_unavailable',
    'Backups are taken of volumes on the machine of the platform, and this one is in a cluster. ' +
      'The operator can back up its claims with the snapshots of the storage class.',
  );
}
