// The row that a create request describes.
import { isKeyValue, runsOnCluster, type DatabasePackageRow } from '../../../core/catalog/catalogs';
import { enginesOwnDatabases } from '../../../core/catalog/catalog_definitions/databases';
import type { Context } from '../../../core/context';
import { problem, validationFailed } from '../../../core/errors';
import type {
  BackupScheduleInput,
  CreateDatabaseInput,
  DatabaseRestoreFromInput,
  MaintenanceWindowInput,
  Weekday,
} from '../../../schema/types';
import type { Values } from '../../../db/table';
import { requireRegion } from '../../reference/region';
import {
  hasFeature,
  requireEngine,
  requireFeature,
  requireNodes,
  requirePackage,
  requireStorage,
  requireVersion,
  versionUnsupported,
  type PlacedEngine,
} from './offer';
import type { MaskRule } from '../../../core/mask_rules';
import { requireMask } from '../../base/database_mask';
import { databaseOfBackup, requireSource } from './origin';

export interface BackupSchedule {
  enabled: boolean;
  hour_utc: number;
  retention_days: number;
}

export interface MaintenanceWindow {
  weekday: Weekday;
  hour_utc: number;
}

export interface DatabasePlan {
  values: Values;
  on_cluster: boolean;
  package: DatabasePackageRow;
  storage_gb: number;
}

/** Engine, version and size of a server: from the request, or from the original. */
interface Shape {
  engine: string;
  engine_version: string;
  on_cluster: boolean;
  package: DatabasePackageRow;
  storage_gb: number;
  database_name: string | null;
  username: string;
  restore_from: Values | null;
}

const USERNAME = 'app';
const DATABASE_NAME = 'app';
const WINDOW: MaintenanceWindow = { weekday: 'sunday', hour_utc: 4 };
/**
 * @throws validation_failed, reference_not_found, engine_version_unsupported, engine_feature_unsupported,
 *   storage_must_increase, backup_not_ready, point_in_time_unavailable
 */
export async function planDatabase(ctx: Context, input: CreateDatabaseInput): Promise<DatabasePlan> {
  const region = input.region ?? ctx.project?.default_region ?? '';
  requireRegion(ctx, region, 'region');
  const from = await originOf(ctx, input);
  const { package: pack, ...shape } = from ? await copiedShape(ctx, input, from) : await chosenShape(ctx, input);
  requireNodes(pack, shape);
  const mask: MaskRule[] | null = input.mask ? requireMask(shape, input.mask, 'mask') : null;
  requireStorage(pack, shape.storage_gb);
  return {
    package: pack,
    on_cluster: shape.on_cluster,
    storage_gb: shape.storage_gb,
    values: {
      ...shape,
      name: input.name,
      region,
      database_package: pack.id,
      nodes: pack.nodes,
      backup_schedule: await newSchedule(ctx, shape, input.backup_schedule ?? {}),
      maintenance_window: mergedWindow(WINDOW, input.maintenance_window ?? {}),
      deletion_protection: input.deletion_protection ?? false,
      mask,
    },
  };
}

/**
 * The requested schedule merged into the present one. @throws engine_feature_unsupported where the engine has no
 * backups
 */
export async function mergedSchedule(
  ctx: Context,
  database: PlacedEngine,
  present: BackupSchedule,
  sent: BackupScheduleInput,
): Promise<BackupSchedule> {
  if (sent.enabled) await requireFeature(ctx, database, 'backups');
  return {
    enabled: sent.enabled ?? present.enabled,
    hour_utc: sent.hour_utc ?? present.hour_utc,
    retention_days: sent.retention_days ?? present.retention_days,
  };
}

export function mergedWindow(present: MaintenanceWindow, sent: MaintenanceWindowInput): MaintenanceWindow {
  return { weekday: sent.weekday ?? present.weekday, hour_utc: sent.hour_utc ?? present.hour_utc };
}

async function newSchedule(ctx: Context, database: PlacedEngine, sent: BackupScheduleInput): Promise<BackupSchedule> {
  const enabled = await hasFeature(ctx, database, 'backups');
  return mergedSchedule(ctx, database, { enabled, hour_utc: 3, retention_days: 7 }, sent);
}

async function chosenShape(ctx: Context, input: CreateDatabaseInput): Promise<Shape> {
  const engine = await requireEngine(ctx, input.engine);
  const engine_version = requireVersion(engine, input.engine_version);
  const pack = await requirePackage(ctx, engine.id, input.database_package);
  return {
    engine: engine.id,
    engine_version,
    on_cluster: runsOnCluster(await ctx.catalogs.facts(), engine.id, engine_version),
    package: pack,
    storage_gb: input.storage_gb ?? pack.storage_gb,
    database_name: databaseName(engine.id, input.database_name),
    username: USERNAME,
    restore_from: null,
  };
}

/** @throws validation_failed, reference_not_found */
async function originOf(
  ctx: Context,
  { restore_from, copy_of, mask }: CreateDatabaseInput,
): Promise<DatabaseRestoreFromInput | null> {
  const dependsOn = (field: string, detail: string): Error => validationFailed([{ field, code: 'depends_on', detail }]);
  if (copy_of && restore_from) throw dependsOn('copy_of', 'cannot be set with restore_from');
  if (mask && !copy_of) throw dependsOn('mask', 'needs copy_of, whose values it replaces');
  if (!copy_of) return restore_from ?? null;
  return { database_id: await databaseOfBackup(ctx, copy_of.backup_id), backup_id: copy_of.backup_id };
}

async function copiedShape(ctx: Context, input: CreateDatabaseInput, from: DatabaseRestoreFromInput): Promise<Shape> {
  const engine = await requireEngine(ctx, input.engine);
  const { source, origin } = await requireSource(ctx, from);
  if (engine.id !== source.engine)
    throw problem(
      'engine_feature_unsupported',
      `The original database uses the engine ${source.engine}. Choose the same engine.`,
      {
        engine: engine.id,
        feature: 'restore_from',
      },
    );
  if (input.engine_version != null && input.engine_version !== origin.engine_version)
    throw versionUnsupported([origin.engine_version]);
  if (input.database_name != null)
    throw validationFailed([
      {
        field: 'database_name',
        code: 'depends_on',
        detail: 'cannot be set for a copy: the name is copied from the original database',
      },
    ]);
  const pack = await requirePackage(ctx, engine.id, input.database_package ?? source.database_package);
  if (input.storage_gb != null && input.storage_gb < source.storage_gb) throw storageTooLow(source.storage_gb);
  const { backup_id, point_in_time } = origin;
  const engine_version = requireVersion(engine, origin.engine_version);
  return {
    engine: engine.id,
    engine_version,
    on_cluster: runsOnCluster(await ctx.catalogs.facts(), engine.id, engine_version),
    package: pack,
    storage_gb: input.storage_gb ?? Math.max(source.storage_gb, pack.storage_gb),
    database_name: source.database_name,
    username: source.username,
    restore_from: { database_id: source.id, backup_id, point_in_time },
  };
}

/** The problem of a requested storage size below the present one. */
export function storageTooLow(present: number): Error {
  return problem('storage_must_increase', `storage_gb is ${present} and can only be increased.`);
}

function databaseName(engine: string, name: string | null | undefined): string | null {
  if (!isKeyValue(engine)) return freeName(name ?? DATABASE_NAME);
  if (name != null)
    throw validationFailed([
      {
        field: 'database_name',
        code: 'depends_on',
        detail: `is not supported by ${engine}, which has no named databases`,
      },
    ]);
  return null;
}

function freeName(name: string): string {
  if (enginesOwnDatabases.includes(name) || name.startsWith('pg_'))
    throw validationFailed([
      { field: 'database_name', code: 'invalid_format', detail: 'is a name that the engine reserves' },
    ]);
  return name;
}
