// Where restored data come from: a backup, or a point in time of a database.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import type { DatabaseRestoreFromInput } from '../../../schema/types';
import { named } from '../../../db/statement';
import { requireFeature, versionUnsupported } from './offer';

// A deleted database is found as long as its last backup is kept.
const SOURCE = named(`select id, engine, engine_version, on_cluster, database_package, storage_gb, database_name,
    username, point_in_time_window, deleted_at
  from databases where id = $1 and project_id = $2 for share`);
const BACKUP = named(
  `select engine_version, status from database_backups where id = $1 and database_id = $2
    and deleted_at is null for share`,
);
const DATABASE_OF_BACKUP = named(
  'select database_id from database_backups where id = $1 and project_id = $2 and deleted_at is null',
);

export interface Window {
  earliest: string;
  latest: string;
  /** Moments within it that no backup leads to. */
  gaps?: { from: string; to: string }[];
}

/** The requested restore point: exactly one of the two. */
export interface Moment {
  backup_id?: string | null;
  point_in_time?: string | null;
}

/** Data to restore, and the version that they are of. */
export interface Origin {
  backup_id: string | null;
  point_in_time: string | null;
  engine_version: string;
}

interface Source {
  id: string;
  engine: string;
  engine_version: string;
  on_cluster: boolean;
  database_package: string;
  storage_gb: number;
  database_name: string | null;
  username: string;
  point_in_time_window: Window | null;
  deleted_at: string | null;
}

/**
 * The database and the restore point that a copy is made from.
 * @throws reference_not_found, backup_not_ready, engine_feature_unsupported, point_in_time_unavailable
 */
export async function requireSource(
  ctx: Context,
  from: DatabaseRestoreFromInput,
): Promise<{ source: Source; origin: Origin }> {
  const [source] = await ctx.sql.query<Source>(SOURCE, [from.database_id, ctx.project?.id]);
  if (!source || (source.deleted_at && from.backup_id == null)) throw unknown('restore_from.database_id');
  return { source, origin: await requireOrigin(ctx, source, from, 'restore_from.') };
}

/** The database of a backup of the project. @throws reference_not_found */
export async function databaseOfBackup(ctx: Context, backupId: string): Promise<string> {
  const [found] = await ctx.sql.query<{ database_id: string }>(DATABASE_OF_BACKUP, [backupId, ctx.project?.id]);
  if (!found) throw unknown('copy_of.backup_id');
  return found.database_id;
}

/**
 * What data of a database a restore in place takes: a backup of the version that it has now, or a moment.
 * @throws as requireSource, engine_version_unsupported for a backup from before an upgrade
 */
export async function requireOriginInProject(
  ctx: Context,
  database: Omit<Source, 'deleted_at'>,
  moment: Moment,
): Promise<Origin> {
  const origin = await requireOrigin(ctx, database, moment, '');
  if (origin.engine_version !== database.engine_version) throw versionUnsupported([database.engine_version]);
  return origin;
}

async function requireOrigin(
  ctx: Context,
  database: Omit<Source, 'deleted_at'>,
  { backup_id, point_in_time }: Moment,
  path: string,
): Promise<Origin> {
  if (backup_id != null)
    return {
      backup_id,
      point_in_time: null,
      engine_version: await requireBackup(ctx, database.id, backup_id, `${path}backup_id`),
    };
  await requireFeature(ctx, database, 'point_in_time');
  return {
    backup_id: null,
    point_in_time: requireMoment(database.point_in_time_window, point_in_time as string),
    engine_version: database.engine_version,
  };
}

/** The version that the backup is of. */
async function requireBackup(ctx: Context, databaseId: string, id: string, field: string): Promise<string> {
  const [backup] = await ctx.sql.query<{ engine_version: string; status: string }>(BACKUP, [id, databaseId]);
  if (!backup) throw unknown(field);
  if (backup.status !== 'completed') throw problem('backup_not_ready', undefined, { resource_status: backup.status });
  return backup.engine_version;
}

/** Both are RFC 3339 in UTC with milliseconds, so that their text is in the order of time. */
function requireMoment(window: Window | null, moment: string): string {
  const gap = window?.gaps?.find(({ from, to }) => from <= moment && moment <= to);
  if (window && !gap && window.earliest <= moment && moment <= window.latest) return moment;
  throw problem(
    'point_in_time_unavailable',
    gap && `No backup leads to the moments from ${gap.from} to ${gap.to}. Choose another one.`,
    window ? { earliest: window.earliest, latest: window.latest } : {},
  );
}

function unknown(field: string): Error {
  return problem('reference_not_found', `${field} names nothing that can be restored.`, { field });
}
