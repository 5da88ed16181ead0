import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { defineStates } from '../../core/states';
import type {
  CreateDeploymentInput,
  DeploymentStatus,
  DeploymentStep,
  DeploymentStepName,
  DeploymentTrigger,
  PromoteApplicationInput,
  QueryListDeploymentsArgs,
  RollbackApplicationInput,
} from '../../schema/types';
import { actorOf } from '../projects/activity';
import { Application } from '../applications/application';
import { imageMistakes } from '../applications/application/image_address';
import { sourceOfUpload, type DeployedSource } from '../applications/application/source';
import { hydrate, Resource } from '../base/resource';
import {
  probeSource,
  requireCommit,
  requireDeployable,
  requireImages,
  type ProbedSource,
} from './deployment/source_probe';
import { findPromotable } from './deployment/promotion';
import { queueDeployment, type NewDeployment, type PromotedFrom } from './deployment/queue';
import { ownDeployments } from './deployment/of_application';
import { page, type Page } from '../base/page';
import { SourceUpload } from './source_upload';
import type { Session } from '../../db/control_database';

/** One attempt to bring a version of the source to run. */
export class Deployment extends Resource {
  static readonly table = 'deployments';
  static readonly kind = 'deployment';
  static readonly idPrefix = 'dep';
  static override readonly filters = {
    status: 'status = ?',
    trigger: 'trigger = ?',
    branch: 'branch = ?',
    commit_sha: 'commit_sha = lower(?)',
    preview_id: 'preview_id = ?',
  };
  static override readonly sorts = ['number'];
  static override readonly states = defineStates<DeploymentStatus>({
    initial: ['queued'],
    transitional: ['queued', 'building', 'deploying'],
    moves: {
      queued: ['building', 'deploying', 'canceled', 'failed'],
      // Back to the queue: the machine with its files was lost.
      building: ['deploying', 'failed', 'canceled', 'queued'],
      deploying: ['active', 'failed', 'canceled', 'queued'],
      active: ['superseded'],
    },
  });

  declare application_id: string;
  declare preview_id: string | null;
  declare number: number;
  declare branch: string | null;
  declare commit_sha: string | null;
  declare image: string | null;
  declare clear_cache: boolean;
  declare trigger: DeploymentTrigger;
  declare source_deployment_id: string | null;
  declare promoted_from: PromotedFrom | null;
  declare commit_message: string | null;
  declare commit_author: string | null;
  declare status: DeploymentStatus;
  declare status_reason: string | null;
  declare created_by: NewDeployment['created_by'];
  declare started_at: string | null;
  declare finished_at: string | null;
  declare activated_at: string | null;
  /** The source at the time of the request. */
  declare source: DeployedSource;
  /** What the builder found (drivers/builder.ts BuildPlan); null before it has looked. */
  declare plan: { processes: Record<string, string>; release_command: string | null } | null;
  /** The deployment whose files it runs: its own id, or for a rollback the id of the original deployment. */
  declare artifact_id: string | null;
  declare files_on: string | null;
  declare artifact_kept: boolean;
  declare release_id: string | null;
  /** Those that have begun, in their order. */
  declare steps: { name: DeploymentStepName; started_at: string }[];

  /**
   * One page: of a preview where `preview_id` names one, else of the application itself. @throws not_found,
   * invalid_cursor
   */
  static async list(ctx: Context, { id, ...args }: QueryListDeploymentsArgs): Promise<Page<Deployment>> {
    await Application.get(ctx, id);
    const source = args.preview_id == null ? ownDeployments(ctx) : undefined;
    return page(Deployment, ctx, args, { application_id: id }, source);
  }

  /** Probes the remote for `createDeployment`. Null where no probe is needed. */
  static ask(ctx: Context, applicationId: string, input: CreateDeploymentInput): Promise<ProbedSource | null> {
    return probeSource(ctx, applicationId, input);
  }

  /**
   * Queues the commit that the probe found.
   * @throws not_found, source_not_configured, validation_failed, engine_unavailable, reference_not_found,
   * provider_error
   */
  static async create(
    ctx: Context,
    applicationId: string,
    input: CreateDeploymentInput,
    probed: ProbedSource | null,
  ): Promise<Deployment> {
    const application = await Application.ofChild(ctx, applicationId);
    const source = probed?.source ?? (await sourceFor(ctx, application, input));
    requireDeployable(source, input);
    if (source.type === 'image') await requireImages(ctx);
    const mistakes = input.image == null ? [] : imageMistakes(ctx, 'image', input.image);
    if (mistakes.length) throw validationFailed(mistakes);
    const head = source.type === 'git' ? requireCommit(probed?.answer, input) : { branch: null, sha: null };
    return queued(ctx, application, {
      source,
      branch: head.branch,
      image: source.type === 'image' ? (input.image ?? source.image) : null,
      commit_sha: head.sha,
      trigger: 'manual',
      clear_cache: input.clear_cache ?? false,
    });
  }

  /**
   * Queues the files of an earlier deployment once more.
   * @throws not_found, reference_not_found, deployment_not_rollbackable
   */
  static async rollBack(
    ctx: Context,
    applicationId: string,
    { deployment_id }: RollbackApplicationInput,
  ): Promise<Deployment> {
    const application = await Application.ofChild(ctx, applicationId);
    const earlier = await Deployment.referenced(ctx, deployment_id, 'deployment_id');
    if (earlier.application_id !== application.id)
      throw problem('reference_not_found', 'deployment_id names no deployment of this application.', {
        field: 'deployment_id',
      });
    if (!earlier.rollback_possible) throw problem('deployment_not_rollbackable', whyNot(earlier));
    const { source, branch, commit_sha, image, commit_message, commit_author, plan, artifact_id, files_on } = earlier;
    return queued(ctx, application, {
      source,
      branch,
      commit_sha,
      image,
      commit_message,
      commit_author,
      plan,
      artifact_id,
      files_on,
      source_deployment_id: earlier.id,
      trigger: 'rollback',
    });
  }

  /**
   * Queues the files of a deployment of another application, which may be in another project.
   * @throws not_found, reference_not_found, role_not_permitted, validation_failed, promotion_not_possible
   */
  static async promote(ctx: Context, applicationId: string, input: PromoteApplicationInput): Promise<Deployment> {
    const application = await Application.ofChild(ctx, applicationId);
    const { promoted_from, deployment } = await findPromotable(ctx, application, input, Deployment);
    const { source, branch, commit_sha, image, commit_message, commit_author } = deployment;
    const of = { source, branch, commit_sha, image, commit_message, commit_author };
    return queued(ctx, application, { ...of, promoted_from, trigger: 'manual' });
  }

  /**
   * Queues the source of a deployment once more, whose files are lost. @throws not_found, reference_not_found
   */
  static async buildAgain(ctx: Context, applicationId: string, id: string): Promise<Deployment> {
    const application = await Application.ofChild(ctx, applicationId);
    const lost = await Deployment.referenced(ctx, id, 'deployment_id');
    const { source, branch, commit_sha, image, commit_message, commit_author } = lost;
    const of = { source, branch, commit_sha, image, commit_message, commit_author };
    return queued(ctx, application, { ...of, trigger: 'manual', clear_cache: false });
  }

  /** Its files are kept, and they were healthy once. */
  get rollback_possible(): boolean {
    return this.artifact_kept && this.activated_at !== null && this.preview_id === null;
  }

  /** `steps`: each ends with the next one, and the last one with the deployment. */
  get steps_with_ends(): DeploymentStep[] {
    const { steps, finished_at } = this;
    return steps.map((step, index) => ({ ...step, finished_at: steps[index + 1]?.started_at ?? finished_at }));
  }

  /**
   * Ends it at once, whatever its job is doing: the job finds out and clears away. @throws invalid_state once it has
   * finished
   */
  async cancel(ctx: Context): Promise<this> {
    const who = ctx.identity?.user?.name ?? ctx.identity?.name;
    return this.move(ctx, 'canceled', { status_reason: `Canceled by ${who}.`, finished_at: new Date().toISOString() });
  }
}

/** The upload that a request names, else the source of the application. @throws reference_not_found */
async function sourceFor(
  ctx: Context,
  application: Application,
  input: CreateDeploymentInput,
): Promise<DeployedSource | null> {
  if (input.source_upload_id == null) return application.source;
  const { id, sha256, size_bytes } = await SourceUpload.toDeploy(ctx, application, input.source_upload_id);
  return sourceOfUpload({ id, sha256: sha256 as string, size_bytes: size_bytes as number });
}

/** Queues it for the caller, and says so in the activity. */
async function queued(
  ctx: Context,
  application: Application,
  what: Omit<NewDeployment, 'application' | 'created_by'>,
): Promise<Deployment> {
  if (!ctx.identity) throw new Error('a deployment is requested without an identity');
  const row = await queueDeployment(ctx.sql as Session, { application, created_by: actorOf(ctx.identity), ...what });
  ctx.activity.resource = {
    type: Deployment.kind,
    id: row.id,
    name: `${application.name} #${row.number}`,
    project_id: application.project_id,
  };
  return hydrate(Deployment, row);
}

function whyNot({ preview_id, activated_at }: Deployment): string {
  if (preview_id !== null) return 'The deployment belongs to a preview. Choose one of the application itself.';
  if (activated_at === null) return 'The deployment was never active. Choose one whose rollback_possible is true.';
  return (
    'The files of the deployment are no longer kept: only those of the last ten that were active are. Choose one ' +
    'whose rollback_possible is true.'
  );
}
