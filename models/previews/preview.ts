import type { Context } from '../../core/context';
import { defineStates } from '../../core/states';
import type { CreatePreviewInput, PreviewStatus } from '../../schema/types';
import { actorOf } from '../projects/activity';
import type { Application } from '../applications/application';
import type { Source } from '../applications/application/source';
import { Resource } from '../base/resource';
import { sessionOf } from '../../db/table';
import { queueDeployment, type NewDeployment } from '../deployments/deployment/queue';
import type { PreviewCopies } from '../deployments/preview_databases';
import { copiesOf } from './preview/copies';
import { expiryOf } from './preview/expiry';
import { requireHead, type ProbedHead } from './preview/head';
import { wantDefaultCertificate } from '../base/default_certificate';
import { freeHostname } from './preview/hostname';

/** A deployment of an application from a branch or pull request, beside the production one. */
export class Preview extends Resource {
  static readonly table = 'previews';
  static readonly kind = 'preview';
  static readonly idPrefix = 'pvw';
  static override readonly filters = {
    status: 'status = ?',
    branch: 'branch = ?',
    pull_request_number: 'pull_request_number = ?',
  };
  static override readonly sorts = ['expires_at'];
  static override readonly quotas = [{ resource: 'previews' }];
  static override readonly states = defineStates<PreviewStatus>({
    initial: ['queued'],
    transitional: ['queued', 'building', 'deploying'],
    moves: {
      queued: ['building', 'deploying', 'failed'],
      building: ['deploying', 'failed'],
      deploying: ['running', 'failed'],
      running: ['queued'],
      failed: ['queued'],
    },
  });

  declare application_id: string;
  /** A branch, or of a pull request the full ref that the remote has for it. */
  declare branch: string;
  declare pull_request_number: number | null;
  declare expires_at: string | null;
  /** Of the last build. */
  declare commit_sha: string | null;
  declare hostname: string;
  declare status: PreviewStatus;
  declare status_reason: string | null;
  declare current_deployment_id: string | null;
  declare release_id: string | null;
  /** Its code gets no variables and is not deployed by itself. */
  declare from_fork: boolean;
  /** Its own databases; null: it has none. */
  declare copies: PreviewCopies | null;
  declare created_by: NewDeployment['created_by'];

  /**
   * With its first deployment queued. The caller holds the application (`Application.ofChild`).
   * @throws validation_failed, source_not_configured, reference_not_found, provider_error, already_exists,
   * quota_exceeded
   */
  static async create(
    ctx: Context,
    application: Application,
    input: CreatePreviewInput,
    found: ProbedHead | null,
  ): Promise<Preview> {
    const pull_request_number = input.pull_request_number ?? null;
    const expires_at = expiryOf(application, input.expires_at);
    const { source, branch, sha } = requireHead(found, pull_request_number);
    const from_fork = found?.from_fork ?? false;
    const hostname = await freeHostname(ctx, application, { branch, pull_request_number });
    const preview = await Preview.insert(ctx, {
      application_id: application.id,
      branch,
      pull_request_number,
      expires_at,
      hostname,
      status: 'queued',
      from_fork,
      copies: copiesOf(application, from_fork),
      created_by: actor(ctx),
    });
    await wantDefaultCertificate(ctx, hostname, { preview_id: preview.id });
    await preview.queue(ctx, application, source, sha, 'pull_request');
    return preview;
  }

  /**
   * Builds the present head of its branch. @throws source_not_configured, reference_not_found, provider_error,
   * resource_busy
   */
  async redeploy(ctx: Context, application: Application, found: ProbedHead | null): Promise<this> {
    const { source, sha } = requireHead(found, this.pull_request_number);
    const copies = copiesOf(application, this.from_fork) ?? (this.copies && { state: 'waiting' });
    await this.move(ctx, 'queued', { copies });
    await this.queue(ctx, application, source, sha, 'manual');
    return this;
  }

  private async queue(
    ctx: Context,
    application: Application,
    source: Source,
    commit_sha: string,
    trigger: NewDeployment['trigger'],
  ): Promise<void> {
    await queueDeployment(sessionOf(ctx), {
      application,
      preview_id: this.id,
      source,
      branch: this.branch,
      commit_sha,
      trigger,
      created_by: actor(ctx),
    });
  }
}

function actor(ctx: Context): NewDeployment['created_by'] {
  if (!ctx.identity) throw new Error('a preview is requested without an identity');
  return actorOf(ctx.identity);
}
