// How large a replica may be, and how many there may be.
import type { DatabasePackageRow } from '../../../core/catalog/catalogs';
import type { Context } from '../../../core/context';
import { validationFailed } from '../../../core/errors';
import { requireCapacity } from '../../reference/capacity';
import { requireFeature, requirePackage } from '../database/offer';
import { named } from '../../../db/statement';

interface Primary {
  engine: string;
  database_package: string;
  storage_gb: number;
}

/**
 * The package of a replica: it must keep up with its database, so it has no less memory, and room for its data.
 * @throws reference_not_found, engine_feature_unsupported, validation_failed
 */
export async function packageFor(ctx: Context, primary: Primary, id: string): Promise<DatabasePackageRow> {
  const size = await requirePackage(ctx, primary.engine, id);
  const { memory_mb } = await requirePackage(ctx, primary.engine, primary.database_package);
  if (size.memory_mb < memory_mb)
    throw validationFailed([
      {
        field: 'database_package',
        code: 'too_small',
        detail: `must have at least ${memory_mb} MB of memory, as the database has`,
      },
    ]);
  if (size.max_storage_gb < primary.storage_gb)
    throw validationFailed([
      {
        field: 'database_package',
        code: 'too_small',
        detail: `must allow ${primary.storage_gb} GB of storage, as the database has`,
      },
    ]);
  return size;
}

/** Promises a new replica, or the difference to its present package. @throws capacity_unavailable */
export async function reserveCapacity(
  ctx: Context,
  primary: Primary,
  size: DatabasePackageRow,
  present: { database_package: string; nodes: number } | null,
): Promise<void> {
  const before = present ? await requirePackage(ctx, primary.engine, present.database_package) : null;
  await requireCapacity(ctx, {
    memory_mb: size.nodes * size.memory_mb - (before && present ? present.nodes * before.memory_mb : 0),
    storage_gb: (size.nodes - (present?.nodes ?? 0)) * primary.storage_gb,
  });
}

const FOLLOWED = named(
  `select 1 from database_replicas where database_id = $1 and deleted_at is null and status <> 'promoting' limit 1`,
);

/** Replicas are made anew in the new version, which has to be able to. @throws engine_feature_unsupported */
export async function requireReplicasFollow(
  ctx: Context,
  database: { id: string; engine: string; on_cluster: boolean },
  engine_version: string,
): Promise<void> {
  const followed = await ctx.sql.query(FOLLOWED, [database.id]);
  if (followed.length) await requireFeature(ctx, { ...database, engine_version }, 'replicas');
}
