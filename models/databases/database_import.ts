import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { mintId, timeOfId } from '../../core/ids';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import { tearDownRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import type {
  CreateDatabaseImportInput,
  FinishDatabaseImportInput,
  DatabaseImportMode,
  DatabaseImportOmission,
  DatabaseImportPhase,
  DatabaseImportStatus,
  DatabaseImportTable,
  QueryListDatabaseImportsArgs,
} from '../../schema/types';
import { page, type Page } from '../base/page';
import { Resource } from '../base/resource';
import type { ManagedDatabase } from './database';
import { importAddress } from './database_import/address';
import { sourceOf, type UrlSource } from './database_import/source';

const UNFINISHED = ['awaiting_upload', 'pending', 'running'] as const;
const BUSY = named(`select status from database_imports where database_id = $1 and deleted_at is null
  and status in ('awaiting_upload', 'pending', 'running') limit 1`);
/** A dump as text may be larger than the tables that it makes, without their indexes. */
const FILE_OF_STORAGE = 2;
const GIGABYTE = 2 ** 30;
const OLD = `id in (select id from database_imports where database_id = $1 and deleted_at is null
  and status in ('completed', 'failed', 'canceled') order by id desc offset $2)`;

/** Data from elsewhere that are brought into a database. */
export class DatabaseImport extends Resource {
  static readonly table = 'database_imports';
  static readonly kind = 'database_import';
  static readonly idPrefix = 'imp';
  static override readonly filters = { status: 'status = ?' };
  static override readonly states = defineStates<DatabaseImportStatus>({
    initial: ['awaiting_upload', 'pending'],
    transitional: ['pending', 'running'],
    moves: {
      awaiting_upload: ['pending', 'failed', 'canceled'],
      pending: ['running', 'failed', 'canceled'],
      running: ['completed', 'failed', 'canceled'],
    },
  });

  declare database_id: string;
  declare mode: DatabaseImportMode;
  declare source_address: string | null;
  /** Known to the response that creates it alone: with it whoever reads could write. */
  declare upload_url?: string;
  declare bytes_max: number;
  declare exclude: string[];
  declare size_bytes: number | null;
  declare bytes_read: number;
  declare tables: DatabaseImportTable[];
  declare not_taken_over: DatabaseImportOmission[];
  declare phase: DatabaseImportPhase | null;
  declare lag_bytes: number | null;
  declare lag_seconds: number | null;
  declare source_slot: string | null;
  declare started_at: string | null;
  declare finished_at: string | null;
  declare status: DatabaseImportStatus;
  declare status_reason: string | null;

  static list(ctx: Context, { id: database_id, ...args }: QueryListDatabaseImportsArgs): Promise<Page<DatabaseImport>> {
    return page(DatabaseImport, ctx, args, { database_id });
  }

  /**
   * Begins an import; the caller holds the database (`ManagedDatabase.ofChild`).
   * @throws validation_failed, engine_feature_unsupported, invalid_state, resource_busy
   */
  static async create(
    ctx: Context,
    database: ManagedDatabase,
    input: CreateDatabaseImportInput,
  ): Promise<DatabaseImport> {
    const { engine } = database;
    const source = sourceOf(input.source, engine);
    if (input.mode === 'follow') requireFollowable(engine, source);
    if (input.exclude?.length && !database.database_name)
      throw validationFailed([{ field: 'exclude', code: 'invalid_format', detail: `${engine} has no tables` }]);
    if (database.on_cluster)
      throw problem('engine_feature_unsupported', 'A database in the cluster takes no imports.', {
        ...{ engine, feature: 'imports' },
      });
    database.requireStatus(['available']);
    const [busy] = await ctx.sql.query<{ status: string }>(BUSY, [database.id]);
    if (busy)
      throw problem('resource_busy', 'Another import into the database has not ended.', {
        resource_status: busy.status,
      });
    await tearDownRows(ctx.sql, {
      ...{ table: this.table, where: OLD, values: [database.id, limits.importsPerDatabase - 1] },
    });
    const id = mintId(this.idPrefix);
    // Whole seconds, as the address has them.
    const expires = Math.floor(Date.now() / 1000) + limits.sourceUploadSeconds;
    const made = await DatabaseImport.insert(ctx, {
      ...{ id, created_at: timeOfId(id).toISOString(), database_id: database.id, mode: input.mode ?? 'copy' },
      source_address: source?.address ?? null,
      sealed_source: source && source.seal(ctx.secrets, id),
      bytes_max: database.storage_gb * FILE_OF_STORAGE * GIGABYTE,
      exclude: input.exclude ?? [],
      upload_expires_at: source ? null : new Date(expires * 1000).toISOString(),
      status: source ? 'pending' : 'awaiting_upload',
    });
    if (!source) made.upload_url = importAddress(ctx, id, expires);
    return made;
  }

  /** Its job applies what is left. @throws invalid_state */
  async finish(ctx: Context, { make_source_read_only }: FinishDatabaseImportInput): Promise<this> {
    this.requireStatus(['running']);
    if (this.phase !== 'following')
      throw problem(
        'invalid_state',
        'Only an import that has copied the data and follows its source can be finished.',
        {
          ...{ resource_status: this.phase ?? this.status, allowed_statuses: ['following'] },
        },
      );
    return this.update(ctx, {
      ...{ finish_requested_at: new Date().toISOString(), make_source_read_only: make_source_read_only ?? false },
      ...{ phase: 'finishing', status_reason: null },
    });
  }

  /**
   * Its job takes back what was imported; one that has not begun is canceled at once. Of one that has ended, it
   * removes what is left at the source. @throws invalid_state
   */
  async cancel(ctx: Context): Promise<this> {
    const now = new Date().toISOString();
    if (['completed', 'failed', 'canceled'].includes(this.status) && this.source_slot)
      return this.update(ctx, { cancel_requested_at: now });
    this.requireStatus([...UNFINISHED]);
    const asked = { cancel_requested_at: now, status_reason: 'It was canceled.' };
    return this.status === 'running'
      ? this.update(ctx, asked)
      : this.move(ctx, 'canceled', { ...asked, finished_at: now, sealed_source: null });
  }
}

/** @throws engine_feature_unsupported, validation_failed */
function requireFollowable(engine: string, source: UrlSource | null): void {
  if (engine !== 'postgresql')
    throw problem('engine_feature_unsupported', 'Only PostgreSQL can follow a source.', { engine, feature: 'follow' });
  if (source?.isServer) return;
  const detail = 'must be the address of a server (postgresql://) for the mode follow';
  throw validationFailed([{ field: 'source.url', code: 'invalid_format', detail }]);
}
