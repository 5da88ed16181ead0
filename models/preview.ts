import { defineStates } from '../core/states';
import { Resource } from './base';

/** An application as it is on a branch or pull request, beside the real one. */
export class Preview extends Resource {
  static readonly table = 'previews';
  static readonly kind = 'preview';
  static readonly idPrefix = 'pvw';
  static override readonly filters = { status: 'status = ?', branch: 'branch = ?', pull_request_number: 'pull_request_number = ?' };
  static override readonly sorts = ['expires_at'];
  static override readonly quotas = [{ resource: 'previews' }];
  static override readonly states = defineStates({
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
  declare branch: string;
  declare pull_request_number: number | null;
  declare expires_at: string | null;
  declare commit_sha: string | null;
  declare hostname: string;
  declare status: 'queued' | 'building' | 'deploying' | 'running' | 'failed';
  declare status_reason: string | null;
  declare current_deployment_id: string | null;
  declare release_id: string | null;
  declare created_by: object;
}
