import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import type { CreateProcessInput, ProcessStatus, ScaleProcessInput, UpdateProcessInput } from '../../schema/types';
import type { Application } from '../applications/application';
import { wakeApplication } from '../applications/application/wake';
import { requireType } from '../applications/application/plan';
import { Resource } from '../base/resource';
import { requestedChanges } from '../base/requested_changes';
import { retireInstancesOfProcess } from '../applications/stack';
import { clamped, requireAutoscaling, requireScale, processSizeOf, type Autoscaling } from './process/scale';

/** The type that takes requests: every application has it. */
export const WEB_PROCESS = 'web';

/**
 * One kind of process of an application: a command and how many instances of it run. `web` is the one that takes
 * requests.
 */
export class Process extends Resource {
  static readonly table = 'processes';
  static readonly kind = 'process';
  static readonly idPrefix = 'prc';
  static override readonly parentLimit = {
    column: 'application_id',
    max: limits.processesPerApplication,
    resource: 'processes',
    parent: 'An application',
    rows: 'process types',
  };
  static override readonly filters = { type: 'type = ?', status: 'status = ?' };
  static override readonly sorts = ['type'];
  static override readonly states = defineStates<ProcessStatus>({
    initial: ['idle'],
    transitional: ['scaling'],
    moves: {
      idle: ['scaling'],
      scaling: ['running', 'idle'],
      running: ['scaling', 'crashed'],
      crashed: ['scaling', 'running'],
    },
  });

  declare application_id: string;
  declare type: string;
  /** null = what the image or the Procfile says. */
  declare command: string | null;
  /** null = the application's. */
  declare application_type: string | null;
  /** Wanted count; `running_instances` is what there is. */
  declare instances: number;
  declare autoscaling: Autoscaling | null;
  /** What its instances should run; null before it was part of a release. */
  declare release_id: string | null;
  declare running_instances: number;
  declare status: ProcessStatus;

  /** As the activity names it. */
  get name(): string {
    return this.type;
  }

  /**
   * A further type of an application that the caller holds (`Application.ofChild`). It runs with the next release.
   * @throws reference_not_found, capacity_unavailable, validation_failed, scale_out_of_range, already_exists,
   * quota_exceeded, engine_unavailable
   */
  static async create(ctx: Context, application: Application, input: CreateProcessInput): Promise<Process> {
    const { type, command = null, autoscaling = null } = input;
    const application_type = input.application_type
      ? await requireType(ctx, input.application_type, application.region)
      : null;
    if (autoscaling) await requireAutoscaling(ctx, autoscaling);
    const instances = clamped(input.instances ?? 0, autoscaling);
    requireScale(await processSizeOf(ctx, application, application_type), autoscaling?.max_instances ?? 0, instances);
    return Process.insert(ctx, {
      application_id: application.id,
      type,
      command,
      application_type,
      autoscaling,
      instances,
    });
  }

  /**
   * Acts with the next release. @throws reference_not_found, capacity_unavailable, scale_out_of_range where more
   * instances are wanted than the new size allows
   */
  async change(ctx: Context, application: Application, input: UpdateProcessInput): Promise<this> {
    const { command, application_type } = requestedChanges(input, this);
    if (application_type) await requireType(ctx, application_type, application.region);
    if (application_type !== undefined)
      requireScale(
        await processSizeOf(ctx, application, application_type),
        this.autoscaling?.max_instances ?? 0,
        this.instances,
      );
    return this.update(ctx, {
      ...(command !== undefined && { command }),
      ...(application_type !== undefined && { application_type }),
    });
  }

  /**
   * Either a count, which turns autoscaling off, or bounds, which the present count is brought into. @throws
   * validation_failed, scale_out_of_range, engine_unavailable
   */
  async scale(ctx: Context, application: Application, input: ScaleProcessInput): Promise<this> {
    const autoscaling = input.autoscaling ?? null;
    if (autoscaling) await requireAutoscaling(ctx, autoscaling);
    const instances = clamped(input.instances ?? this.instances, autoscaling);
    requireScale(
      await processSizeOf(ctx, application, this.application_type),
      autoscaling?.max_instances ?? 0,
      instances,
    );
    const acts = this.release_id !== null && !AT_REST.has(application.status);
    await this.update(ctx, { instances, autoscaling, ...(acts && { status: 'scaling' }) });
    if (acts) await wakeApplication(ctx.sql, application.id);
    return this;
  }

  /** Takes its instances along. @throws resource_protected for `web` */
  async destroy(ctx: Context): Promise<void> {
    if (this.type === WEB_PROCESS)
      throw problem(
        'resource_protected',
        'The process type web takes the requests of the application and cannot be removed. Scale it to 0 instead.',
      );
    await this.remove(ctx);
    await retireInstancesOfProcess(ctx.sql, this.id);
    await wakeApplication(ctx.sql, this.application_id);
  }
}

/** Statuses without running instances: scaling only stores the desired count. */
const AT_REST = new Set(['new', 'stopping', 'stopped']);
