// Disk usage of a unit without a separate disk. It is measured periodically, and at once when the free space of the
// host's file systems has dropped so much that the unit may exceed its limit: statfs is cheap.
import { statfsSync, statSync, type StatsFs } from 'node:fs';
import { CommandFailed, run } from '../../core/process/command';
import { driverContext } from '../../core/driver';
import { FILES_PER_MB } from '../runtime';

export interface DiskMeter {
  /**
   * Whether the unit is beyond its limit. Measures only where that is due.
   * @param whileStill runs a measurement with the unit paused, so that the unit does not write meanwhile
   */
  isBeyondLimit(whileStill: (measure: () => Promise<boolean>) => Promise<boolean>): Promise<boolean>;
}

export interface MeterTiming {
  everyMs: number;
  /** Pause after a measurement, in multiples of its duration: before a regular one, and before one on suspicion. */
  pauses: { regular: number; suspicion: number };
}

/** Bytes or files. */
interface Gauge {
  limit: number;
  freeOf: (all: StatsFs[]) => number;
  /** Arguments of du(1), and what one of its numbers is. */
  du: { args: string[]; unit: number };
  onSuspicionOnly: boolean;
  /** Remaining quota of the unit at the time when the file systems had `freeThen`. */
  left: number;
  freeThen: number;
}

const MEASURE_WITHIN_MS = 120_000;
/** Fraction of the limit. A unit near its limit is not measured continuously, but may exceed it by this much. */
const LEAST_LEFT = 0.05;

/** Measures all files in the directories. @param diskMb limit in megabytes; FILES_PER_MB gives the limit of files */
export function openDiskMeter(directories: string[], diskMb: number, { everyMs, pauses }: MeterTiming): DiskMeter {
  const gauges = gaugesFor(diskMb, fileSystemsOf(directories));
  let dueAt = Date.now() + everyMs;
  let notBefore = 0;
  return {
    async isBeyondLimit(whileStill) {
      const began = Date.now();
      if (began < notBefore) return false;
      const now = fileSystemsOf(directories);
      const suspicious = gauges.filter((gauge) => gauge.freeThen - gauge.freeOf(now) > gauge.left);
      const due = began < dueAt ? suspicious : gauges.filter((one) => !one.onSuspicionOnly || suspicious.includes(one));
      if (due.length === 0) return false;
      const measure = () => measureAll(due, directories, now);
      const beyond = await (suspicious.length > 0 ? whileStill(measure) : measure());
      const tookMs = Date.now() - began;
      dueAt = Date.now() + Math.max(everyMs, pauses.regular * tookMs);
      notBefore = Date.now() + pauses.suspicion * tookMs;
      return beyond;
    },
  };
}

function gaugesFor(diskMb: number, now: StatsFs[]): Gauge[] {
  const bytes = {
    limit: diskMb * 2 ** 20,
    freeOf: (all: StatsFs[]) => all.reduce((sum, { bavail, bsize }) => sum + bavail * bsize, 0),
    du: { args: ['-skx'], unit: 1024 },
    onSuspicionOnly: false,
  };
  const files = {
    limit: diskMb * FILES_PER_MB,
    freeOf: (all: StatsFs[]) => all.reduce((sum, { ffree }) => sum + ffree, 0),
    du: { args: ['-sx', '--inodes'], unit: 1 },
    onSuspicionOnly: true,
  };
  // The usage at the start is unknown.
  return [bytes, files].map((one) => ({ ...one, left: one.limit / 2, freeThen: one.freeOf(now) }));
}

async function measureAll(gauges: Gauge[], directories: string[], before: StatsFs[]): Promise<boolean> {
  for (const gauge of gauges) {
    const used = await sumOfDu(gauge.du.args, directories);
    if (used === null) continue;
    const taken = used * gauge.du.unit;
    if (taken > gauge.limit) return true;
    gauge.left = Math.max(gauge.limit - taken, gauge.limit * LEAST_LEFT);
    // Data written during the measurement may be missing in it.
    gauge.freeThen = gauge.freeOf(before);
  }
  return false;
}

/** Each once. */
function fileSystemsOf(directories: string[]): StatsFs[] {
  const byDevice = new Map<number, string>();
  for (const directory of directories) {
    const found = statSync(directory, { throwIfNoEntry: false });
    if (found !== undefined) byDevice.set(found.dev, directory);
  }
  return [...byDevice.values()].map((directory) => statfsSync(directory));
}

async function sumOfDu(args: string[], directories: string[]): Promise<number | null> {
  try {
    return sumOf(await run('du', [...args, '--', ...directories], driverContext(MEASURE_WITHIN_MS)));
  } catch (error) {
    // A file that went away meanwhile makes du complain, but it counts on.
    return error instanceof CommandFailed ? sumOf(error.stdout) : null;
  }
}

function sumOf(lines: string): number {
  return lines.split('\n').reduce((sum, line) => sum + (parseInt(line, 10) || 0), 0);
}
