import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { firstIdAt } from '../../core/ids';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import type {
  CreateDatabaseBackupInput,
  DatabaseBackupDownload,
  DatabaseBackupStatus,
  DatabaseBackupType,
  DatabaseProofStatus,
  ProjectDatabaseBackup,
  QueryListDatabaseBackupsArgs,
  QueryListProjectDatabaseBackupsArgs,
} from '../../schema/types';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { backupBin } from './database_backup/bin';
import { downloadAddress } from './database_backup/download';
import { UNPROVEN_IN_PODS, wakeProofs } from './database_proof';
import type { ManagedDatabase } from './database';
import { requireFeature } from './database/offer';
import { page, tenantSource, type Page, type PageArguments } from '../base/page';
import { named } from '../../db/statement';

const RUNNING = named(
  `select status from database_backups where database_id = $1 and status in ('pending', 'running')
    and deleted_at is null limit 1`,
);

const DATABASE = `(select jsonb_build_object('id', d.id, 'name', d.name, 'engine', d.engine, 'deleted_at',
  to_char(d.deleted_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
  from databases d where d.id = database_backups.database_id) as database`;

/** What a database held at one time. */
export class DatabaseBackup extends Resource {
  static readonly table = 'database_backups';
  static readonly kind = 'database_backup';
  static readonly idPrefix = 'bkp';
  static override readonly parentLimit = {
    column: 'database_id',
    max: limits.manualBackupsPerDatabase,
    resource: 'manual_backups',
    parent: 'A database',
    rows: 'manual backups',
    where: `type = 'manual'`,
  };
  static override readonly bin: Bin<DatabaseBackup> = backupBin;
  static override readonly filters = {
    ...{ type: 'type = ?', status: 'status = ?', since: 'id >= ?', until: 'id < ?' },
    database_id: 'database_id = ?',
    deleted: `exists (select 1 from databases d where d.id = database_backups.database_id
      and d.deleted_at is not null) = ?`,
  };
  static override readonly states = defineStates<DatabaseBackupStatus>({
    initial: ['pending'],
    transitional: ['pending', 'running'],
    moves: { pending: ['running', 'failed'], running: ['completed', 'failed'] },
  });

  declare database_id: string;
  /** In the bin, where its database is not beside it. */
  declare name?: string;
  declare type: DatabaseBackupType;
  declare note: string | null;
  declare engine_version: string;
  declare size_bytes: number | null;
  declare started_at: string | null;
  declare finished_at: string | null;
  /** null: it is kept. */
  declare expires_at: string | null;
  declare proof_status: DatabaseProofStatus;
  declare proven_at: string | null;
  declare proof_seconds: number | null;
  declare proof_rows: number | null;
  declare proof_failure: string | null;
  declare manifest: Record<string, string | number> | null;
  declare status: DatabaseBackupStatus;
  declare status_reason: string | null;

  /** Backups of a database. `since` and `until` are times of creation, which ids carry. */
  static list(ctx: Context, { id: database_id, ...args }: QueryListDatabaseBackupsArgs): Promise<Page<DatabaseBackup>> {
    const since = args.since && firstIdAt(DatabaseBackup.idPrefix, args.since);
    const until = args.until && firstIdAt(DatabaseBackup.idPrefix, args.until);
    return page(DatabaseBackup, ctx, { ...args, since, until } as PageArguments, { database_id });
  }

  /** Those of all databases of a project, with what deleted ones were. */
  static async listOfProject(
    ctx: Context,
    { id: _, ...args }: QueryListProjectDatabaseBackupsArgs,
  ): Promise<Page<ProjectDatabaseBackup>> {
    const own = tenantSource(DatabaseBackup, ctx);
    const source = { ...own, columns: `${own.columns}, ${DATABASE}` };
    const found = await page(DatabaseBackup, ctx, args as PageArguments, {}, source);
    return found as Page<DatabaseBackup & Pick<ProjectDatabaseBackup, 'database'>>;
  }

  /**
   * One that is kept, taken now; the caller holds the database (`ManagedDatabase.ofChild`).
   * @throws engine_feature_unsupported, invalid_state, resource_busy, quota_exceeded
   */
  static async create(
    ctx: Context,
    database: ManagedDatabase,
    input: CreateDatabaseBackupInput,
  ): Promise<DatabaseBackup> {
    await requireFeature(ctx, database, 'backups');
    database.requireStatus(['available']);
    const [running] = await ctx.sql.query<{ status: string }>(RUNNING, [database.id]);
    if (running)
      throw problem('resource_busy', 'Another backup of the database is being taken.', {
        resource_status: running.status,
      });
    return DatabaseBackup.insert(ctx, {
      database_id: database.id,
      type: 'manual',
      note: input.note ?? null,
      engine_version: database.engine_version,
    });
  }

  /**
   * Asks for a proof; one that is waited for already is not asked for again.
   * @throws engine_feature_unsupported for a server in the cluster, backup_not_ready
   */
  async prove(ctx: Context, database: ManagedDatabase): Promise<this> {
    if (database.on_cluster)
      throw problem('engine_feature_unsupported', UNPROVEN_IN_PODS, { engine: database.engine, feature: 'proofs' });
    if (this.status !== 'completed') throw problem('backup_not_ready', undefined, { resource_status: this.status });
    if (this.proof_status === 'running') return this;
    await wakeProofs(ctx.sql);
    return this.update(ctx, {
      ...{ proof_status: 'waiting', proof_failure: null, proof_due_at: null },
      proof_requested_at: new Date().toISOString(),
    });
  }

  /**
   * Who deletes a database deletes its backups first: they are protected with it.
   * @throws deletion_protected, resource_busy while it is taken
   */
  async destroy(ctx: Context, database: ManagedDatabase): Promise<void> {
    await requireUnprotected(ctx, database);
    this.requireStatus(['completed', 'failed']);
    this.name = `${database.name}, ${this.created_at}`;
    // The backup of today is the one that is missed most.
    await removeToBin(ctx, this, { since: database.created_at });
  }

  /** @throws backup_not_ready, also where the dump could not be made */
  download(ctx: Context): DatabaseBackupDownload {
    const { status, status_reason } = this;
    if (status !== 'completed') throw problem('backup_not_ready', undefined, { resource_status: status });
    if (this.manifest?.dump_reason !== undefined)
      throw problem('backup_not_ready', status_reason ?? undefined, { resource_status: status });
    return downloadAddress(ctx, this.id);
  }
}
