// Temporary directories for trials of host features. The next trial removes directories of killed processes.
import { mkdtempSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { isPidTaken } from '../core/process/processes';

/** A new directory for a trial of this process, mode 0700. @throws Error of the file system */
export function makeTrial(directory: string): string {
  return mkdtempSync(path.join(directory, `.trial-${process.pid}-`));
}

/** Paths of trials whose process has exited. @throws Error of the file system */
export function abandonedTrials(directory: string): string[] {
  return readdirSync(directory).flatMap((entry) => {
    const pid = /^\.trial-(\d+)-/.exec(entry)?.[1];
    return pid !== undefined && !isPidTaken(Number(pid)) ? [path.join(directory, entry)] : [];
  });
}
