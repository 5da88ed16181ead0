// The image of a release in the registry of the platform, if RELEASE_IMAGES enables it for every deployment: created
// before any code of the version runs, so that it contains exactly the result of the build.
import path from 'node:path';
import { DriverError, EngineAway } from '../../../core/driver';
import type { PublishedImage, ReleaseImageDriver, ReleasePlace } from '../../../drivers/release_image';
import { BUILT_IMAGE } from '../../../drivers/builder/dockerfile/dockerfile_script';
import {
  findPromoted,
  findReleaseToPublish,
  saveReleaseImage,
  storedImages,
  unneededImages,
  type ReleaseToPublish,
} from '../../../models/deployments/release_image';
import { ensurePlatformRegistry } from '../../../models/registries/registry/platform_registry';
import { allAtOnce, type Leftovers } from '../../declarations';
import { progressing, requireHost, type JobContext, type Outcome } from '../../job';
import { imageAccess } from './image_access';
import { StepFailure, type StepContext } from '../../workflow';
import { hasFilesHere, hasPublishedImage } from './lost_files';
import { requirePlanning } from './plan';
import { artifactDirectory, cacheDirectory, withoutUser, type DeploymentRow, type StoredPlan } from './row';

const ALL_IMAGES = 'all';

/** Whether the release has no image yet and gets one. Its settings may have become another release meanwhile. */
export function wantsImage({ release_id, observed, on_cluster }: DeploymentRow, { config }: JobContext): boolean {
  const isNeeded = config.releaseImages === 'always' || on_cluster;
  return isNeeded && observed?.published !== release_id;
}

export async function publishRelease(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  const { release_id: id, plan } = row;
  const release = id === null ? null : await findReleaseToPublish(ctx.sql, id);
  if (id === null || !release || !plan) throw new DriverError('transient', 'The application was deleted.');
  const image =
    (await reusedImage(row, plan, release, ctx)) ??
    (await promotedImage(row, plan, id, ctx)) ??
    (await publishFiles(row, plan, { id, ...release }, ctx));
  await ctx.appendLog(`Released as ${image}`);
  return progressing(0, { observed: { ...row.observed, published: id } });
}

/** Of a rollback to an image, which may be kept nowhere else by now, or whose files are on another machine. */
async function reusedImage(
  row: DeploymentRow,
  plan: StoredPlan,
  { image }: ReleaseToPublish,
  ctx: StepContext,
): Promise<ReleaseToPublish['image']> {
  if (!(await hasPublishedImage(image, row, ctx))) return null;
  return plan.image || !(await hasFilesHere(row, ctx)) ? image : null;
}

/** Copies the image of the promoted release, where its source is an image, or there are no files to make one of. */
async function promotedImage(
  row: DeploymentRow,
  plan: StoredPlan,
  releaseId: string,
  ctx: StepContext,
): Promise<ReleaseToPublish['image']> {
  if (!row.promoted_from || (!plan.image && (await hasFilesHere(row, ctx)))) return null;
  const { application_name, number } = row.promoted_from;
  const origin = await findPromoted(ctx.sql, row.id);
  if (!origin?.image)
    throw new StepFailure(
      `The release of deployment ${number} of ${application_name} has no image. Deploy ${application_name} again, ` +
        'and promote that.',
    );
  if (!plan.image && !origin.starts_alike)
    throw new StepFailure(
      `The commands of ${application_name} are others, and its files are on another machine. Deploy the source.`,
    );
  const { registry } = requireHost(ctx);
  if (!registry) throw new EngineAway('The container registry of this installation is not running.');
  const { repository, digest } = parseReleaseImage(origin.image);
  const access = { credentials: null, local: await registry.pullAccess(repository) };
  const from = { reference: `${ctx.config.registryHost}/${origin.image}`, access };
  const place = releasePlaceOf(row, releaseId, ctx);
  const copied = await (await openImages(ctx)).copy({ ...place, from, digest }, ctx);
  return `${copied.repository}@${copied.digest}`;
}

function releasePlaceOf({ application_id }: DeploymentRow, releaseId: string, ctx: StepContext): ReleasePlace {
  return {
    ...{ repository: application_id, tag: releaseId },
    announce: ({ repository, digest }) => saveReleaseImage(ctx.sql, releaseId, `${repository}@${digest}`),
  };
}

async function publishFiles(...[row, plan, release, ctx]: Parameters<typeof publish>): Promise<string> {
  if (row.attempts === 0) await ctx.appendLog('-----> Publishing the release as an image');
  const { repository, digest } = await publish(row, plan, release, ctx);
  return `${repository}@${digest}`;
}

async function publish(
  row: DeploymentRow,
  plan: StoredPlan,
  release: ReleaseToPublish & { id: string },
  ctx: StepContext,
): Promise<PublishedImage> {
  const { builder, facts } = requireHost(ctx);
  const images = await openImages(ctx);
  const place = releasePlaceOf(row, release.id, ctx);
  if (plan.image) return copyOf(row, plan, place, images, ctx);
  const processes = Object.fromEntries(
    Object.entries(release.processes).map(([type, { command }]) => [type, command] as const),
  );
  const commands = [...Object.values(processes), release.settings.run.release_command ?? plan.release_command ?? ''];
  const tools = builder.runTimeTools(plan, commands, await facts());
  const request = {
    ...{ ...place, processes, env: plan.env, tools },
    directory: artifactDirectory(row, ctx),
    root_directory: release.settings.root_directory,
    labels: labelsOf(row),
  };
  return images.publish(request, ctx);
}

/** As it was pulled, or as its Dockerfile was built. */
async function copyOf(
  row: DeploymentRow,
  { image, kind }: StoredPlan,
  place: ReleasePlace,
  images: ReleaseImageDriver,
  ctx: StepContext,
): Promise<PublishedImage> {
  const { digest, reference } = image!;
  const planning = await requirePlanning(row, ctx);
  const from =
    kind === 'dockerfile'
      ? { layout: path.join(cacheDirectory(row, ctx), BUILT_IMAGE) }
      : { reference, access: await imageAccess(row, reference, planning, ctx) };
  return images.copy({ ...place, from, digest }, ctx);
}

function labelsOf({ source, commit_sha }: DeploymentRow): Record<string, string> {
  const { repository_url: address = null } = source;
  return {
    ...(address !== null && { 'org.opencontainers.image.source': withoutUser(address) }),
    ...(commit_sha !== null && { 'org.opencontainers.image.revision': commit_sha }),
  };
}

async function openImages(ctx: JobContext): Promise<ReleaseImageDriver> {
  const { openReleaseImages, registry } = requireHost(ctx);
  if (!registry) throw new EngineAway('The container registry of this installation is not running.');
  return openReleaseImages(await ensurePlatformRegistry(ctx.sql, ctx.config.regionId));
}

/**
 * Removes images of the application that no deployment needs any more. What a registry that is away keeps is removed by
 * the sweep: nothing waits for it.
 */
export async function pruneReleaseImages(applicationId: string, ctx: JobContext): Promise<void> {
  const stored = await storedImages(ctx.sql, applicationId);
  if (stored.length === 0 || !requireHost(ctx).registry) return;
  const images = await openImages(ctx);
  for (const image of await unneededImages(ctx.sql, stored))
    await images.remove(parseReleaseImage(image), ctx).catch((error: unknown) => {
      if (!(error instanceof DriverError) || ctx.signal.aborted) throw error;
      ctx.log.warn({ err: error, image }, 'an image of a release that nothing needs was not removed');
    });
}

/** Images whose release or application was deleted. Existing images are listed from the registry's database rows. */
export const imageLeftovers: Leftovers = {
  kind: 'release image',
  list: ({ host }) => allAtOnce(Promise.resolve(host?.registry ? [ALL_IMAGES] : [])),
  withoutRow: async (sql) => unneededImages(sql, await storedImages(sql, null)),
  remove: (image, { openReleaseImages }, ctx) =>
    openReleaseImages(image.slice(0, image.indexOf('/'))).remove(parseReleaseImage(image), ctx),
};

function parseReleaseImage(image: string): PublishedImage {
  const at = image.indexOf('@');
  return { repository: image.slice(0, at), digest: image.slice(at + 1) };
}
