import path from 'node:path';
import type { Launch } from '../../../models/applications/instance_work';
import { type JobContext, requireHost } from '../../job';

/** The files that an instance gets a copy of. */
export function instanceArtifactDirectory({ artifact_id }: Launch, ctx: JobContext): string {
  return path.join(requireHost(ctx).directories.releases, artifact_id);
}
