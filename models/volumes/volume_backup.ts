import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { mintId } from '../../core/ids';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import { named } from '../../db/statement';
import type {
  CreateVolumeBackupInput,
  QueryListVolumeBackupsArgs,
  RestoreVolumeBackupInput,
  VolumeBackupConsistency,
  VolumeBackupDownload,
  VolumeBackupStatus,
  VolumeBackupType,
} from '../../schema/types';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { page, type Page } from '../base/page';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { Volume } from './volume';
import { volumeBackupBin } from './volume_backup/bin';
import { volumeDownloadAddress } from './volume_backup/download';
import { requireVolumeOnHost } from './volume_backup/on_host';
import { sealedPassphrase } from './volume_backup/passphrase';

const RUNNING = named(`select status from volume_backups
  where volume_id = $1 and status in ('pending', 'running') and deleted_at is null limit 1`);

/** The files of a volume as they were at one time. */
export class VolumeBackup extends Resource {
  static readonly table = 'volume_backups';
  static readonly kind = 'volume_backup';
  static readonly idPrefix = 'vbk';
  static override readonly parentLimit = {
    column: 'volume_id',
    max: limits.manualBackupsPerVolume,
    resource: 'manual_backups',
    parent: 'A volume',
    rows: 'manual backups',
    where: `type = 'manual'`,
  };
  static override readonly bin: Bin<VolumeBackup> = volumeBackupBin;
  static override readonly filters = { type: 'type = ?', status: 'status = ?' };
  static override readonly states = defineStates<VolumeBackupStatus>({
    initial: ['pending'],
    transitional: ['pending', 'running'],
    moves: { pending: ['running', 'failed'], running: ['completed', 'failed'] },
  });

  declare volume_id: string;
  /** In the bin, where its volume is not beside it. */
  declare name?: string;
  declare type: VolumeBackupType;
  declare note: string | null;
  declare consistency: VolumeBackupConsistency | null;
  declare size_bytes: number | null;
  declare volume_size_gb: number;
  /** Of the files, as the volume counts them. */
  declare content_bytes: number | null;
  declare started_at: string | null;
  declare finished_at: string | null;
  /** null: it is kept. */
  declare expires_at: string | null;
  declare status: VolumeBackupStatus;
  declare status_reason: string | null;

  /** @throws not_found, invalid_cursor */
  static async list(ctx: Context, { id, ...args }: QueryListVolumeBackupsArgs): Promise<Page<VolumeBackup>> {
    await Volume.get(ctx, id);
    return page(VolumeBackup, ctx, args, { volume_id: id });
  }

  /** @throws not_found */
  static async ofVolume(ctx: Context, volumeId: string, id: string): Promise<VolumeBackup> {
    await Volume.get(ctx, volumeId);
    return VolumeBackup.get(ctx, id, { volume_id: volumeId });
  }

  /**
   * One that is kept, taken now; the caller holds the volume.
   * @throws engine_unavailable, invalid_state, resource_busy, quota_exceeded
   */
  static async create(ctx: Context, volume: Volume, input: CreateVolumeBackupInput): Promise<VolumeBackup> {
    await requireVolumeOnHost(ctx, volume.id);
    // It waits for a volume that is being made or grown.
    volume.requireStatus(['provisioning', 'resizing', 'available', 'in_use']);
    const [running] = await ctx.sql.query<{ status: string }>(RUNNING, [volume.id]);
    if (running)
      throw problem('resource_busy', 'Another backup of the volume is being taken.', {
        resource_status: running.status,
      });
    const id = mintId(VolumeBackup.idPrefix);
    return VolumeBackup.insert(ctx, {
      id,
      volume_id: volume.id,
      type: 'manual',
      note: input.note ?? null,
      volume_size_gb: volume.size_gb,
      passphrase: sealedPassphrase(ctx.secrets, id),
    });
  }

  /**
   * Who deletes a volume deletes its backups too: they are protected with it.
   * @throws deletion_protected, resource_busy while it is taken
   */
  async destroy(ctx: Context, volume: Volume): Promise<void> {
    await requireUnprotected(ctx, volume);
    this.requireStatus(['completed', 'failed']);
    this.name = `${volume.name}, ${this.created_at}`;
    // The backup of today is the one that is missed most.
    await removeToBin(ctx, this, { since: volume.created_at });
  }

  /** @throws backup_not_ready */
  download(ctx: Context): VolumeBackupDownload {
    this.requireCompleted();
    return volumeDownloadAddress(ctx, this.id);
  }

  /**
   * Into the volume, which the caller has locked, or a new one. @returns the volume that gets the files
   * @throws engine_unavailable, backup_not_ready, resource_in_use, invalid_state, resource_busy, and as Volume.create
   */
  async restore(ctx: Context, volume: Volume, input: RestoreVolumeBackupInput): Promise<Volume> {
    await requireVolumeOnHost(ctx, volume.id);
    this.requireCompleted();
    if (input.in_place) return volume.restore(ctx, this.id);
    if (input.name == null)
      throw problem('validation_failed', undefined, {
        errors: [{ field: 'in_place', code: 'depends_on', detail: 'must be true, or `name` be given' }],
      });
    const [size_gb, needed_gb] = [input.size_gb ?? this.volume_size_gb, Math.ceil((this.content_bytes ?? 0) / 2 ** 30)];
    if (size_gb < needed_gb)
      throw problem('volume_size_out_of_range', 'The files of the backup do not fit into a volume of this size.', {
        min_gb: needed_gb,
        max_gb: limits.volumeSizeMaxGb,
      });
    return Volume.createFrom(ctx, this.id, { name: input.name, size_gb, region: volume.region });
  }

  private requireCompleted(): void {
    const { status: resource_status } = this;
    if (resource_status !== 'completed') throw problem('backup_not_ready', undefined, { resource_status });
  }
}
