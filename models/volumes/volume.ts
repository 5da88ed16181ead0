import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import type { CreateVolumeInput, UpdateVolumeInput, VolumeEnforcement, VolumeStatus } from '../../schema/types';
import { Application } from '../applications/application';
import { wakeWorkloads } from '../applications/workload';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { Resource } from '../base/resource';
import type { Values } from '../../db/table';
import type { Billing } from '../base/metering';
import { removeToBin } from '../base/purge';
import { requireRoom } from '../base/quota';
import { isOnlyField, requestedChanges } from '../base/requested_changes';
import { requireNoFullDisk } from '../observers/installation_alarm/full_disk';
import { requireRegion } from '../reference/region';
import { volumeBin } from './volume/bin';
import { requireUnused } from './volume/restore';
import { nextBackupAt } from './volume_backup/job_queries';
import { requireHostDriver, requireVolumeOnHost } from './volume_backup/on_host';

/** A persistent storage volume: grows only, attached to at most one application. */
export class Volume extends Resource {
  static readonly table = 'volumes';
  static readonly kind = 'volume';
  static readonly idPrefix = 'vol';
  static override readonly reserves =
    // In the bin they are still on the disk.
    'select null::text as database_package, 0 as nodes, size_gb as storage_gb from volumes';
  static override readonly projectChild = 'volumes';
  static override readonly filters = {
    name: 'name = ?',
    status: 'status = ?',
    region: 'region = ?',
    application_id: 'application_id = ?',
  };
  static override readonly sorts = ['name', 'size_gb'];
  static override readonly quotas = [{ resource: 'volumes' }, { resource: 'volume_storage_gb', sum: 'size_gb' }];
  static readonly billing: Billing = { price: 'volume_gb', quantity: 'size_gb' };
  static override readonly bin: Bin<Volume> = volumeBin;
  static override readonly states = defineStates<VolumeStatus>({
    initial: ['provisioning'],
    transitional: ['provisioning', 'resizing', 'restoring'],
    moves: {
      provisioning: ['available', 'in_use', 'failed'],
      available: ['in_use', 'resizing', 'restoring', 'failed'],
      in_use: ['available', 'resizing', 'restoring', 'failed'],
      restoring: ['available', 'in_use', 'failed'],
      resizing: ['available', 'in_use', 'failed'],
      failed: ['resizing', 'restoring', 'provisioning', 'available', 'in_use'],
    },
  });

  declare name: string;
  declare size_gb: number;
  declare region: string;
  declare application_id: string | null;
  declare mount_path: string | null;
  declare status: VolumeStatus;
  declare status_reason: string | null;
  declare enforcement: VolumeEnforcement | null;
  declare used_bytes: number | null;
  declare over_quota: boolean;
  declare deletion_protection: boolean;
  declare backup_schedule: string | null;
  declare backup_retention_days: number;

  /**
   * @throws volume_size_out_of_range, region_mismatch, reference_not_found, name_taken, mount_path_taken,
   * quota_exceeded, capacity_unavailable
   */
  static create(ctx: Context, input: CreateVolumeInput): Promise<Volume> {
    return Volume.make(ctx, input, {});
  }

  /** One that gets the files of a backup. @throws as create */
  static createFrom(ctx: Context, backup_id: string, input: CreateVolumeInput): Promise<Volume> {
    return Volume.make(ctx, input, { restoring_from: restoreOf(backup_id) });
  }

  private static async make(ctx: Context, input: CreateVolumeInput, more: Values): Promise<Volume> {
    const application =
      input.application_id != null ? await Application.referenced(ctx, input.application_id, 'application_id') : null;
    const region = input.region ?? application?.region ?? ctx.project?.default_region ?? '';
    requireRegion(ctx, region, 'region');
    requireSize(input.size_gb);
    await requireNoFullDisk(ctx);
    if (application && application.region !== region) throw problem('region_mismatch');
    if (input.backup_schedule != null) requireHostDriver(ctx, null);
    await wakeWorkloads(ctx, [application?.id ?? null]);
    return Volume.insert(ctx, {
      ...{ ...input, ...more },
      region,
      application_id: application?.id ?? null,
      mount_path: input.mount_path ?? null,
      deletion_protection: input.deletion_protection ?? false,
      backup_schedule: input.backup_schedule ?? null,
      next_backup_at: nextBackupAt(input.backup_schedule ?? null),
      backup_retention_days: input.backup_retention_days ?? limits.volumeBackupDaysDefault,
    });
  }

  /**
   * Name, size and attachment in one step. @throws as create, volume_size_must_increase, resource_busy, invalid_state
   */
  async change(ctx: Context, input: UpdateVolumeInput): Promise<this> {
    const { name, size_gb, deletion_protection, backup_schedule, backup_retention_days, ...place } = requestedChanges(
      input,
      this,
    );
    const asksToGrow = size_gb != null || (input.size_gb != null && isOnlyField(input, 'size_gb'));
    const changes: Values = {
      ...(name != null && { name }),
      ...(deletion_protection != null && { deletion_protection }),
      ...(backup_retention_days != null && { backup_retention_days }),
      ...(backup_schedule !== undefined && (await this.schedule(ctx, backup_schedule))),
      ...(await this.attachment(ctx, place)),
      ...(asksToGrow && (await this.growth(ctx, size_gb ?? this.size_gb))),
    };
    return this.update(ctx, changes);
  }

  /** Replaces its files with those of a backup. @throws resource_in_use, invalid_state, resource_busy */
  async restore(ctx: Context, backup_id: string): Promise<this> {
    await requireUnused(ctx, this);
    return this.move(ctx, 'restoring', { restoring_from: restoreOf(backup_id), restore_failure: null });
  }

  /** @throws deletion_protected, resource_in_use while attached */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    if (this.application_id) {
      throw problem('resource_in_use', 'The volume is attached to an application.', {
        dependents: [{ type: 'application', id: this.application_id }],
      });
    }
    await removeToBin(ctx, this);
  }

  /** The status of a volume that is ready. */
  static settledStatus(row: { application_id: string | null }): 'available' | 'in_use' {
    return row.application_id ? 'in_use' : 'available';
  }

  private async schedule(ctx: Context, backup_schedule: string | null): Promise<Values> {
    if (backup_schedule !== null) await requireVolumeOnHost(ctx, this.id);
    return { backup_schedule, next_backup_at: nextBackupAt(backup_schedule) };
  }

  // A larger size sent while provisioning is simply the size that the volume is made with.
  private async growth(ctx: Context, size_gb: number): Promise<Values> {
    if (size_gb <= this.size_gb) {
      throw problem('volume_size_must_increase', undefined, {
        current_size_gb: this.size_gb,
        requested_size_gb: size_gb,
      });
    }
    requireSize(size_gb);
    if (this.status !== 'provisioning') this.requireStatus(['available', 'in_use', 'failed']);
    await requireRoom(
      ctx,
      Volume,
      this.project_id,
      { resource: 'volume_storage_gb', sum: 'size_gb' },
      size_gb - this.size_gb,
    );
    return {
      ...{ size_gb, status_reason: null, restore_failure: null },
      ...(this.status !== 'provisioning' && { status: this.enforcement ? 'resizing' : 'provisioning' }),
    };
  }

  private async attachment(ctx: Context, input: UpdateVolumeInput): Promise<Values> {
    if (input.application_id === undefined && input.mount_path === undefined) return {};
    const id = input.application_id === undefined ? this.application_id : input.application_id;
    const mount_path =
      input.application_id === null && input.mount_path === undefined ? null : (input.mount_path ?? this.mount_path);
    requirePair(id, input.mount_path === null ? null : mount_path);
    const application = id ? await Application.referenced(ctx, id, 'application_id') : null;
    if (application && application.region !== this.region) throw problem('region_mismatch');
    await wakeWorkloads(ctx, [id, this.application_id]);
    const settled = this.status === 'available' || this.status === 'in_use';
    return {
      application_id: id,
      mount_path: id ? mount_path : null,
      restore_failure: null,
      ...(settled && { status: Volume.settledStatus({ application_id: id }) }),
    };
  }
}

/** A repeated restore of the same backup is another one. */
function restoreOf(backup_id: string): Values {
  return { backup_id, requested_at: new Date().toISOString() };
}

/** @throws volume_size_out_of_range with min_gb and max_gb */
function requireSize(size_gb: number): void {
  const { volumeSizeMinGb: min_gb, volumeSizeMaxGb: max_gb } = limits;
  if (size_gb < min_gb || size_gb > max_gb) throw problem('volume_size_out_of_range', undefined, { min_gb, max_gb });
}

function requirePair(application_id: string | null | undefined, mount_path: string | null | undefined): void {
  if (Boolean(application_id) === Boolean(mount_path)) return;
  const field = application_id ? 'application_id' : 'mount_path';
  const needs = application_id ? 'mount_path' : 'application_id';
  throw problem('validation_failed', undefined, { errors: [{ field, code: 'depends_on', detail: `needs ${needs}` }] });
}
