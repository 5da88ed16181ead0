import type { Context } from '../../core/context';
import { defineStates } from '../../core/states';
import type { ApplicationStatus, CreateApplicationInput, UpdateApplicationInput } from '../../schema/types';
import { planApplication, requireType } from './application/plan';
import { applicationBin, giveUpDependents } from './application/bin';
import { lockVolumes } from './application/dependents';
import type { StoredSettings } from './application_settings';
import { changedSource, type Source } from './application/source';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { requestedChanges } from '../base/requested_changes';
import { requireNoZoneBefore } from '../base/cdn_origin';
import type { Values } from '../../db/table';
import { EnvironmentVariable } from '../environment/environment_variable';
import { wantDefaultCertificate } from '../base/default_certificate';
import { Process } from '../processes/process';

/** A source, built and run as processes behind a host name. */
export class Application extends Resource {
  static readonly table = 'applications';
  static readonly kind = 'application';
  static readonly idPrefix = 'app';
  static override readonly projectChild = 'applications';
  static override readonly filters = {
    name: 'name = ?',
    status: 'status = ?',
    region: 'region = ?',
    application_type: 'application_type = ?',
  };
  static override readonly sorts = ['name', 'updated_at'];
  static override readonly quotas = [{ resource: 'applications' }];
  static override readonly bin: Bin<Application> = applicationBin;
  static override readonly states = defineStates<ApplicationStatus>({
    initial: ['new'],
    transitional: ['deploying', 'restarting', 'stopping', 'starting'],
    moves: {
      new: ['deploying'],
      deploying: ['running', 'new'],
      running: ['restarting', 'stopping', 'crashed'],
      crashed: ['running', 'restarting', 'stopping'],
      restarting: ['running', 'stopping'],
      stopping: ['stopped'],
      stopped: ['starting'],
      starting: ['running', 'stopping'],
    },
  });

  declare name: string;
  declare description: string | null;
  declare region: string;
  declare application_type: string;
  declare source: Source | null;
  declare preset: string | null;
  declare default_hostname: string;
  declare status: ApplicationStatus;
  declare status_reason: string | null;
  declare current_deployment_id: string | null;
  declare auto_deploy_enabled: boolean;
  declare deletion_protection: boolean;
  /** Only the settings that differ from the defaults; for those see models/applications/application_settings.ts. */
  declare settings: StoredSettings;

  /**
   * With its process types and, from a preset, its variables. Deploys nothing.
   * @throws validation_failed, reference_not_found, capacity_unavailable, name_taken, quota_exceeded
   */
  static async create(ctx: Context, input: CreateApplicationInput): Promise<Application> {
    const plan = await planApplication(ctx, input);
    const application = await Application.insert(ctx, plan.values);
    await wantDefaultCertificate(ctx, application.default_hostname, { application_id: application.id });
    for (const process of plan.processes) await Process.insert(ctx, { ...process, application_id: application.id });
    for (const { key, value } of plan.variables) await EnvironmentVariable.add(ctx, application, key, { value });
    return application;
  }

  /**
   * The application, locked against changes of its children. For operations that address a child, whose If-Match is
   * meant.
   * @throws not_found
   */
  static ofChild(ctx: Context, id: string): Promise<Application> {
    return Application.held(ctx, id);
  }

  /**
   * The application, locked after its volumes: attaching locks in this order too, so neither waits for the other for
   * ever.
   */
  static async toDestroy(ctx: Context, id: string): Promise<Application> {
    await lockVolumes(ctx, id);
    return Application.forUpdate(ctx, id);
  }

  /** @throws validation_failed, reference_not_found, capacity_unavailable, name_taken */
  async change(ctx: Context, input: UpdateApplicationInput): Promise<this> {
    const { source, application_type, ...plain } = requestedChanges(input, this);
    const changes: Values = {
      ...plain,
      ...(source !== undefined && { source: await changedSource(ctx, this.source, source) }),
      ...(application_type != null && { application_type: await requireType(ctx, application_type, this.region) }),
    };
    return this.update(ctx, changes);
  }

  /**
   * Gives up its custom domains and previews, and sets its volumes free.
   * @throws deletion_protected, resource_in_use for the origin of a CDN zone
   */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    await requireNoZoneBefore(ctx, 'application', this);
    await removeToBin(ctx, this, await giveUpDependents(ctx, this));
  }
}
