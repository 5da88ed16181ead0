// What this host offers to databases: engines, versions, packages and what they can do.
import {
  databaseEngineRows,
  databasePackageRows,
  engineFeatures,
  installedSeries,
  isNewerSeries,
  type DatabaseEngineRow,
  type DatabasePackageRow,
} from '../../../core/catalog/catalogs';
import type { EngineFeature } from '../../../core/catalog/catalog_rows';
import type { Values } from '../../../db/table';
import type { Context } from '../../../core/context';
import { problem, validationFailed } from '../../../core/errors';
import { engineNotInstalled } from '../../../core/catalog/missing_programs';

/** The engine of a database, and whether its server runs in the cluster or on this host. */
export interface PlacedEngine {
  engine: string;
  engine_version: string;
  on_cluster: boolean;
}

/** @throws reference_not_found */
export async function requireEngine(ctx: Context, id: string): Promise<DatabaseEngineRow> {
  const found = databaseEngineRows(await ctx.catalogs.facts()).find((engine) => engine.id === id);
  if (found) return found;
  const reason = engineNotInstalled(id) ?? 'The engine does not exist. GET /v2/databases/engines lists the engines.';
  throw problem('reference_not_found', reason, { field: 'engine' });
}

/** The version, without one the engine's default. @throws engine_version_unsupported */
export function requireVersion(engine: DatabaseEngineRow, version: string | null | undefined): string {
  const found = engine.versions.find((one) => (version == null ? one.default : one.version === version));
  if (!found) throw versionUnsupported(engine.versions.map((one) => one.version));
  return found.version;
}

/** A version that the present one can be upgraded to. @throws engine_version_unsupported */
export async function requireNewerVersion(
  ctx: Context,
  present: { engine: string; engine_version: string; on_cluster: boolean },
  wanted: string,
): Promise<string> {
  const installed = installedSeries(await ctx.catalogs.facts(), present.engine, present);
  const newer = installed.filter((version) => isNewerSeries(version, present.engine_version));
  if (!newer.includes(wanted)) throw versionUnsupported(newer);
  return wanted;
}

/** The problem that names the versions which would do. */
export function versionUnsupported(available_versions: string[]): Error {
  return problem('engine_version_unsupported', undefined, { available_versions });
}

/**
 * The package, without one the engine's smallest.
 * @throws reference_not_found for an unknown one, engine_feature_unsupported for one of other engines
 */
export async function requirePackage(
  ctx: Context,
  engine: string,
  id: string | null | undefined,
): Promise<DatabasePackageRow> {
  const packages = databasePackageRows(await ctx.catalogs.facts());
  const found = id == null ? smallestOf(packages, engine) : packages.find((one) => one.id === id);
  if (!found)
    throw problem('reference_not_found', 'database_package names no package of this platform.', {
      field: 'database_package',
    });
  if (!found.engines.includes(engine))
    throw problem('engine_feature_unsupported', `The package ${found.id} is not for this engine.`, {
      engine,
      feature: found.id,
    });
  return found;
}

/**
 * Several nodes are servers of the cluster, with data of their own from the beginning.
 * @throws engine_feature_unsupported
 */
export function requireNodes(
  { id, nodes }: DatabasePackageRow,
  { engine, on_cluster, restore_from }: { engine: string; on_cluster: boolean; restore_from: Values | null },
): void {
  if (nodes === 1 || (on_cluster && restore_from === null)) return;
  const reason = on_cluster
    ? 'A backup cannot be restored into a database with automatic failover yet. Name a `database_package` of one node.'
    : `The package ${id} is for versions that run in the cluster, which this one does not.`;
  throw problem('engine_feature_unsupported', reason, { engine, feature: 'failover' });
}

/** @throws engine_feature_unsupported for what databases with several nodes lack */
export function requireOneNode({ engine, nodes }: { engine: string; nodes: number }, reason: string): void {
  if (nodes > 1) throw problem('engine_feature_unsupported', reason, { engine, feature: 'failover' });
}

/**
 * What the version of a database can do on this host.
 * @throws engine_feature_unsupported with engine and feature
 */
export async function requireFeature(ctx: Context, database: PlacedEngine, feature: EngineFeature): Promise<void> {
  if (await hasFeature(ctx, database, feature)) return;
  const { engine, engine_version } = database;
  throw problem(
    'engine_feature_unsupported',
    `${engine} ${engine_version} does not support ${feature} on this installation.`,
    {
      engine,
      feature,
    },
  );
}

export async function hasFeature(
  ctx: Context,
  { engine, engine_version, on_cluster }: PlacedEngine,
  feature: EngineFeature,
): Promise<boolean> {
  return engineFeatures(await ctx.catalogs.facts(), engine, engine_version, { on_cluster }).includes(feature);
}

/** @throws validation_failed unless the storage is within the bounds of the package */
export function requireStorage(
  { id, storage_gb: min, max_storage_gb: max }: DatabasePackageRow,
  storage_gb: number,
): void {
  if (storage_gb < min)
    throw validationFailed([{ field: 'storage_gb', code: 'too_small', detail: `must be at least ${min} with ${id}` }]);
  if (storage_gb > max)
    throw validationFailed([{ field: 'storage_gb', code: 'too_large', detail: `must be at most ${max} with ${id}` }]);
}

function smallestOf(packages: DatabasePackageRow[], engine: string): DatabasePackageRow | undefined {
  const offered = packages.filter(({ engines }) => engines.includes(engine));
  return offered.sort((a, b) => a.nodes * a.memory_mb - b.nodes * b.memory_mb)[0];
}
