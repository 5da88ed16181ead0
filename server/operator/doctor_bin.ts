// What deleted resources that are still kept hold of the disk.
import type { Config } from '../../core/config';
import { gibibytesText } from '../../core/sentence';
import { pendingMigrations } from '../../db/migrate';
import { diskUsedPercent } from '../../drivers/host';
import { heldInBins } from '../../models/bin/evict';
import { MIGRATIONS } from '../platform/platform';
import { isMade, withDatabase } from './doctor_database';
import type { Finding } from './finding';

const FULL_PERCENT = 90;

/** Nothing before the first start, and on a schema of before. */
export async function deletedResources(config: Config): Promise<Finding[]> {
  if (!isMade(config)) return [];
  return withDatabase(config, async (opened) => {
    if ((await pendingMigrations(opened, MIGRATIONS)).length) return [];
    const { count, bytes } = await heldInBins(opened);
    const held =
      count === 0
        ? 'nothing is in the bin of a project'
        : `${count} deleted resources are kept, with ${gibibytesText(bytes)} of volumes and databases`;
    const percent = (await diskUsedPercent(config.dataDir)) ?? 0;
    if (count === 0 || percent < FULL_PERCENT) return [{ check: 'bin', status: 'ok', detail: held }];
    const advice = `${percent} % of the disk are used: \`svc bin purge\` removes one of a project for good`;
    return [{ check: 'bin', status: 'warning', detail: `${held}; ${advice}${automatic(config)}` }];
  });
}

function automatic({ evictDeletedAboveDiskPercent: limit }: Config): string {
  if (limit === null) return ', EVICT_DELETED_ABOVE_DISK_PERCENT those deleted first by itself';
  return `, and above ${limit} % those deleted first go by themselves`;
}
