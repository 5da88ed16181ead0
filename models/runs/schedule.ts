import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { nextDue } from '../../core/protocols/cron';
import type { Values } from '../../db/table';
import type {
  CreateScheduleInput,
  QueryListSchedulesArgs,
  ScheduleConcurrency,
  ScheduleMissed,
  ScheduleRun,
  UpdateScheduleInput,
} from '../../schema/types';
import { Application } from '../applications/application';
import { requireType } from '../applications/application/plan';
import { page, type Page } from '../base/page';
import type { ParentLimit } from '../base/quota';
import { Resource } from '../base/resource';
import { noteChange } from '../base/row';
import { requestedChanges } from '../base/requested_changes';
import { Run } from './run';
import { cancelRuns } from './run/cancel';
import { lockUnfinished } from './schedule/unfinished';

/** A command that runs at certain times. */
export class Schedule extends Resource {
  // `schedules` are the tasks of the platform itself.
  static readonly table = 'cron_schedules';
  static readonly kind = 'schedule';
  static readonly idPrefix = 'sch';
  static override readonly filters = { enabled: 'enabled = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'schedules' }];
  static override readonly parentLimit: ParentLimit = {
    column: 'application_id',
    max: limits.schedulesPerApplication,
    resource: 'schedules',
    parent: 'An application',
    rows: 'schedules',
  };

  declare application_id: string;
  declare name: string;
  declare cron: string;
  declare time_zone: string;
  declare command: string;
  declare process_type: string | null;
  declare application_type: string | null;
  declare timeout_seconds: number;
  declare concurrency: ScheduleConcurrency;
  declare missed: ScheduleMissed;
  declare enabled: boolean;
  declare status_reason: string | null;
  declare next_run_at: string | null;
  declare last_run: ScheduleRun | null;
  declare failures_in_a_row: number;

  /** @throws not_found, invalid_cursor */
  static async list(ctx: Context, { id, ...args }: QueryListSchedulesArgs): Promise<Page<Schedule>> {
    await Application.get(ctx, id);
    return page(Schedule, ctx, args, { application_id: id });
  }

  /** @throws not_found */
  static async ofApplication(ctx: Context, applicationId: string, id: string): Promise<Schedule> {
    await Application.get(ctx, applicationId);
    return Schedule.get(ctx, id, { application_id: applicationId });
  }

  /** As ofApplication, locked. @throws not_found, precondition_failed */
  static async toChange(ctx: Context, applicationId: string, id: string): Promise<Schedule> {
    await Application.get(ctx, applicationId);
    return Schedule.forUpdate(ctx, id, { application_id: applicationId });
  }

  /** @throws not_found, reference_not_found, capacity_unavailable, name_taken, quota_exceeded */
  static async create(ctx: Context, applicationId: string, input: CreateScheduleInput): Promise<Schedule> {
    const application = await Application.ofChild(ctx, applicationId);
    const { name, cron, command } = input;
    const [time_zone, enabled] = [input.time_zone ?? 'UTC', input.enabled ?? true];
    return Schedule.insert(ctx, {
      application_id: application.id,
      name,
      cron,
      time_zone,
      command,
      enabled,
      process_type: input.process_type ?? null,
      application_type: input.application_type && (await requireType(ctx, input.application_type, application.region)),
      timeout_seconds: input.timeout_seconds ?? limits.runSecondsDefault,
      concurrency: input.concurrency ?? 'forbid',
      missed: input.missed ?? 'run_once',
      next_run_at: nextRunAt({ cron, time_zone, enabled }),
    });
  }

  /** A new time counts from now. @throws reference_not_found, capacity_unavailable, name_taken */
  async change(ctx: Context, input: UpdateScheduleInput): Promise<this> {
    const changes: Values = requestedChanges(input, this);
    if (changes.application_type != null) {
      const { region } = await Application.get(ctx, this.application_id);
      changes.application_type = await requireType(ctx, changes.application_type as string, region);
    }
    const { cron = this.cron, time_zone = this.time_zone, enabled = this.enabled } = input as Partial<Schedule>;
    if (cron !== this.cron || time_zone !== this.time_zone || enabled !== this.enabled)
      Object.assign(changes, { next_run_at: nextRunAt({ cron, time_zone, enabled }), status_reason: null });
    return this.update(ctx, changes);
  }

  /**
   * Runs the command now.
   * @throws not_found, precondition_failed, resource_busy, and what Run.create throws
   */
  static async trigger(ctx: Context, applicationId: string, id: string): Promise<Run> {
    await Application.ofChild(ctx, applicationId);
    const unfinished = await lockUnfinished(ctx.sql, id);
    const schedule = await Schedule.forUpdate(ctx, id, { application_id: applicationId });
    if (unfinished.length && schedule.concurrency === 'forbid')
      throw problem('resource_busy', `The last run of the schedule has not finished. ${OVERLAP_HINT}`, {
        resource_status: unfinished[0]?.status,
      });
    if (schedule.concurrency === 'replace')
      await cancelRuns(ctx.sql, unfinished, 'Canceled by a new run of its schedule.');
    noteChange(ctx, { type: Schedule.kind, id, name: schedule.name });
    const { command, process_type, application_type, timeout_seconds } = schedule;
    const input = { command, process_type, application_type, timeout_seconds };
    return Run.create(ctx, applicationId, input, { type: 'schedule', id });
  }
}

const OVERLAP_HINT = 'Cancel it, or set `concurrency` to `allow` or `replace`.';

type Timing = Pick<Schedule, 'cron' | 'time_zone' | 'enabled'>;

function nextRunAt({ cron, time_zone, enabled }: Timing): string | null {
  return enabled ? (nextDue(cron, time_zone, new Date())?.toISOString() ?? null) : null;
}
