// How full the file systems of the data directory are, in bytes and in inodes.
import { stat, statfs } from 'node:fs/promises';
import { gibibytesText } from '../../../core/sentence';
import { FULL_LEVEL, type Reading } from '../../../models/observers/installation_alarm/alarm_rules';

const PERCENT = 100;
const WHAT =
  'Free room, or give the disk more: the log, `platform doctor` and the pages of the installation say what there is. ' +
  `From ${FULL_LEVEL} % on nothing is built and no volume is made; what runs, runs on.`;

/** One reading of each file system. Directories that do not exist are left out. */
export async function diskReadings(directories: readonly string[]): Promise<Reading[]> {
  const seen = new Set<number>();
  const readings: Reading[] = [];
  for (const directory of directories) {
    const device = await stat(directory).then(
      ({ dev }) => dev,
      () => null,
    );
    if (device === null || seen.has(device)) continue;
    seen.add(device);
    readings.push(...(await readingsOf(directory)));
  }
  return readings;
}

async function readingsOf(directory: string): Promise<Reading[]> {
  const { blocks, bfree, bavail, bsize, files, ffree } = await statfs(directory);
  const subject = directory;
  // As df computes it: what is reserved for root is neither used nor free.
  const bytes = percentOf(blocks - bfree, blocks - bfree + bavail);
  const inodes = percentOf(files - ffree, files);
  const left = gibibytesText(bavail * bsize);
  return [
    {
      ...{ name: 'disk', subject, value: bytes },
      ...{ title: `The disk of ${directory} is ${Math.floor(bytes)} % full, ${left} are free`, detail: WHAT },
    },
    // Some file systems, such as Btrfs, have no fixed number.
    ...(files === 0
      ? []
      : [
          {
            ...{ name: 'inodes' as const, subject, value: inodes },
            title: `The disk of ${directory} has used ${Math.floor(inodes)} % of its inodes`,
            detail: `Delete directories with many small files. ${WHAT}`,
          },
        ]),
  ];
}

function percentOf(used: number, all: number): number {
  return all > 0 ? (used / all) * PERCENT : 0;
}
