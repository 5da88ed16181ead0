// A process that reads one archive of a user, beside the API: its time and memory are not those of requests.
import { constants, setPriority } from 'node:os';
import { diskFull, DriverError, driverContext } from '../../../../core/driver';
import { openProcessChannel } from '../../../../core/process/channel';
import { SourceError } from '../../../source';
import type { ArchiveLimits, ArchiveTotals } from '../../archive';
import { checkArchive, unpackSource } from '../unpack';

/** What a call has come to. Errors keep their kind on the way. */
export type Answer = ArchiveTotals | { failure: SourceError['failure']; message: string } | { isDiskFull: true };

async function answered(work: Promise<ArchiveTotals>): Promise<Answer> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof SourceError) return { failure: error.failure, message: error.message };
    if (error instanceof DriverError && error.message === diskFull().message) return { isDiskFull: true };
    throw error;
  }
}

setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
openProcessChannel(process, {
  check: (file: string, limits: ArchiveLimits, withinMs: number) =>
    answered(checkArchive(file, limits, driverContext(withinMs))),
  unpack: (file: string, limits: ArchiveLimits, withinMs: number, directory: string) =>
    answered(unpackSource(file, directory, limits, driverContext(withinMs))),
});
// It ends with the process that started it: a terminal sends its signals to both.
process.on('disconnect', () => process.exit());
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
