// A directory in which a driver tries what the host can do. A trial of a process that was killed leaves it behind, for
// the next one to remove.
import { mkdtempSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { isPidTaken } from '../core/process/processes';

/** A new directory for a trial of this process, mode 0700. @throws Error of the file system */
export function makeTrial(directory: string): string {
  return mkdtempSync(path.join(directory, `.trial-${process.pid}-`));
}

/** The paths of trials whose process is gone. @throws Error of the file system */
export function abandonedTrials(directory: string): string[] {
  return readdirSync(directory).flatMap((entry) => {
    const pid = /^\.trial-(\d+)-/.exec(entry)?.[1];
    return pid !== undefined && !isPidTaken(Number(pid)) ? [path.join(directory, entry)] : [];
  });
}
