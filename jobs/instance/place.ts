import path from 'node:path';
import type { Launch } from '../../models/instance_work';
import type { JobContext } from '../job';
import { hostOf } from './row';

/** The files that an instance gets a copy of. */
export function fileDirectory({ artifact_id }: Launch, ctx: JobContext): string {
  return path.join(hostOf(ctx).directories.releases, artifact_id);
}
