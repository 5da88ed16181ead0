import { defineStates } from '../core/states';
import type { Source } from './application/source';
import { Resource } from './base';

/** One attempt to bring a version of the source to run. */
export class Deployment extends Resource {
  static readonly table = 'deployments';
  static readonly kind = 'deployment';
  static readonly idPrefix = 'dep';
  static override readonly filters = { status: 'status = ?', trigger: 'trigger = ?', branch: 'branch = ?', commit_sha: 'commit_sha = ?' };
  static override readonly sorts = ['number'];
  static override readonly states = defineStates({
    initial: ['queued'],
    transitional: ['queued', 'building', 'deploying'],
    moves: {
      queued: ['building', 'deploying', 'canceled', 'failed'],
      building: ['deploying', 'failed', 'canceled'],
      deploying: ['active', 'failed', 'canceled'],
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
  declare trigger: 'manual' | 'push' | 'pull_request' | 'rollback';
  declare source_deployment_id: string | null;
  declare commit_message: string | null;
  declare commit_author: string | null;
  declare status: 'queued' | 'building' | 'deploying' | 'active' | 'superseded' | 'failed' | 'canceled';
  declare status_reason: string | null;
  declare created_by: object;
  declare started_at: string | null;
  declare finished_at: string | null;
  declare activated_at: string | null;
  /** As it was when the deployment was asked for. */
  declare source: Source;
  /** What the builder found (drivers/builder.ts BuildPlan); null before it has looked. */
  declare plan: { processes: Record<string, string>; release_command: string | null } | null;
  /** Whose files it runs: its own id, of a rollback that of the deployment which was built. */
  declare artifact_id: string | null;
  declare artifact_kept: boolean;
  declare release_id: string | null;
}
