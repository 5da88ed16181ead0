// Auto-deploy of an image: what its tag leads to is looked at after a push to the registry of this installation, and
// now and then for the others.
import { pinnedReference } from '../../core/protocols/image_reference';
import { DriverError } from '../../core/driver';
import { ImageError } from '../../drivers/image';
import type { Source } from '../../models/applications/application/source';
import {
  deployedDigest,
  deployHead,
  type AutoDeployRow,
  type WatchedApplication,
} from '../../models/deployments/auto_deploy';
import { findPlanning } from '../../models/deployments/deployment_plan';
import { imageAccess } from './deployment/image_access';
import { requireHost, type JobContext } from '../job';

/** Columns to remember, and when to look again if not after the usual time. */
export interface Found {
  [column: string]: unknown;
  nextMs?: number;
}

/** Columns to remember. A tag that was never seen is compared with what runs. @throws ImageError */
export async function checkTag(
  row: AutoDeployRow,
  application: WatchedApplication,
  { image }: Source,
  ctx: JobContext,
): Promise<Found> {
  const planning = await findPlanning(ctx.sql, application.id);
  if (image === null || image.includes('@') || !planning)
    throw new ImageError('missing', 'The image of the application has no tag that could move.');
  const access = await imageAccess({ ...application, preview_id: null }, image, planning, ctx);
  const digest = await requireHost(ctx).images.resolve(image, access, ctx).catch(asImageError);
  const isKnown = row.last_seen_sha !== null && row.watched === image;
  const before = isKnown ? row.last_seen_sha : await deployedDigest(ctx.sql, row.id);
  if (before === null || before === digest) return { last_seen_sha: digest, watched: image };
  const version = { branch: null, sha: digest, image: pinnedReference(image, digest) };
  await deployHead(ctx.sql, row, application, version, image);
  return { status_reason: null };
}

/** An unreachable registry is polled again with the back-off of an unreachable repository. */
function asImageError(error: unknown): never {
  if (error instanceof DriverError) throw new ImageError('missing', error.message);
  throw error;
}
