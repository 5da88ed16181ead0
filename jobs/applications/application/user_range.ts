// The directory whose user ids the images of an application have.
import path from 'node:path';
import { requireHost, type JobContext } from '../../job';

/** Goes with the application, after all that runs of it: its images have the user ids of this directory. */
export function rangeDirectory(applicationId: string, ctx: JobContext): string {
  return path.resolve(requireHost(ctx).directories.caches, applicationId);
}
