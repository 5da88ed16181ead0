import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { isId, mintId } from '../../core/ids';
import { defineStates } from '../../core/states';
import type { CreateDatabaseReplicaInput, DatabaseReplicaStatus, UpdateDatabaseReplicaInput } from '../../schema/types';
import { isKept } from '../base/bin';
import { Resource } from '../base/resource';
import type { Billing } from '../base/metering';
import { packageFor, reserveCapacity } from './database_replica/size';
import { removeEndpointsOf } from './database_replica/endpoints';
import type { ManagedDatabase } from './database';
import { allocatePort } from '../reference/capacity';
import { wakeDatabase } from './database/wake';
import { requireFeature } from './database/offer';
import { requireRegion } from '../reference/region';
import { named } from '../../db/statement';

const KNOWN = named('select 1 from database_replicas where id = $1 and database_id = $2 and deleted_at is null');

/** A server that follows a database and takes reads only. */
export class DatabaseReplica extends Resource {
  static readonly table = 'database_replicas';
  static readonly kind = 'database_replica';
  static readonly idPrefix = 'rep';
  // With a copy of the data of its database.
  static override readonly reserves = `select case when r.deleted_at is null then r.database_package end
    as database_package, r.nodes, r.nodes * d.storage_gb as storage_gb
    from database_replicas r join databases d on d.id = r.database_id where r.deleted_at is null or ${isKept('r')}`;
  static override readonly parentLimit = {
    column: 'database_id',
    max: limits.replicasPerDatabase,
    resource: 'replicas',
    parent: 'A database',
    rows: 'replicas',
    where: `status <> 'promoting'`,
  };
  static override readonly filters = { status: 'status = ?', region: 'region = ?' };
  static override readonly sorts = ['name'];
  static readonly billing: Billing = { price: { column: 'database_package' }, quantity: 'nodes' };
  static override readonly states = defineStates<DatabaseReplicaStatus>({
    initial: ['provisioning'],
    transitional: ['provisioning', 'updating', 'promoting'],
    moves: {
      provisioning: ['available', 'failed'],
      // Back to `provisioning` when its primary was replaced: the replica is rebuilt.
      available: ['updating', 'promoting', 'failed', 'provisioning'],
      updating: ['available', 'failed', 'provisioning'],
      promoting: ['failed'],
      failed: ['available', 'provisioning'],
    },
  });

  declare database_id: string;
  declare name: string;
  declare region: string;
  declare database_package: string;
  declare nodes: number;
  declare replication_lag_seconds: number | null;
  declare status: DatabaseReplicaStatus;
  declare status_reason: string | null;
  /** Names its directory and its unit. */
  declare server_id: string;
  declare port: number;
  /** The user of the operating system derives from it. */
  declare tenant: number;

  /**
   * A replica of a database that the caller holds (`ManagedDatabase.ofChild`).
   * @throws reference_not_found, engine_feature_unsupported, validation_failed, invalid_state, resource_busy,
   * name_taken, quota_exceeded, capacity_unavailable
   */
  static async create(
    ctx: Context,
    database: ManagedDatabase,
    input: CreateDatabaseReplicaInput,
  ): Promise<DatabaseReplica> {
    const region = input.region ?? database.region;
    requireRegion(ctx, region, 'region');
    const size = await packageFor(ctx, database, input.database_package ?? database.database_package);
    await requireFeature(ctx, database, 'replicas');
    database.requireStatus(['available']);
    await reserveCapacity(ctx, database, size, null);
    const id = mintId(DatabaseReplica.idPrefix);
    const server = { server_id: id, port: await allocatePort(ctx, id), database_package: size.id, nodes: size.nodes };
    const made = await DatabaseReplica.insert(ctx, {
      id,
      database_id: database.id,
      name: input.name,
      region,
      ...server,
    });
    await wakeDatabase(ctx.sql, database.id);
    return made;
  }

  /** A replica of the database that a body refers to. @throws reference_not_found with `field` */
  static async ofDatabase(ctx: Context, databaseId: string, id: string, field: string): Promise<DatabaseReplica> {
    const found = await DatabaseReplica.referenced(ctx, id, field);
    if (found.database_id === databaseId) return found;
    throw problem('reference_not_found', `${field} names no replica of this database.`, { field });
  }

  /** Whether the database has it. */
  static async exists(ctx: Context, id: string, databaseId: string): Promise<boolean> {
    return isId(DatabaseReplica.idPrefix, id) && (await ctx.sql.query(KNOWN, [id, databaseId])).length > 0;
  }

  /**
   * A name at any time, a package when it is available; the caller holds the database.
   * @throws reference_not_found, engine_feature_unsupported, validation_failed, invalid_state, resource_busy,
   * name_taken, capacity_unavailable
   */
  async change(ctx: Context, database: ManagedDatabase, input: UpdateDatabaseReplicaInput): Promise<this> {
    const name = input.name != null && { name: input.name };
    if (input.database_package == null || input.database_package === this.database_package)
      return this.update(ctx, { ...name });
    const size = await packageFor(ctx, database, input.database_package);
    this.requireStatus(['available']);
    await reserveCapacity(ctx, database, size, this);
    return this.move(ctx, 'updating', { ...name, database_package: size.id, nodes: size.nodes });
  }

  /**
   * Takes along the endpoints that lead to it alone. @throws resource_busy while it is promoted, resource_in_use where
   * an attachment uses one of these
   */
  async destroy(ctx: Context): Promise<void> {
    this.requireFollowing();
    await removeEndpointsOf(ctx, this);
    await this.remove(ctx);
    await wakeDatabase(ctx.sql, this.database_id);
  }

  /** @throws resource_busy during a promotion */
  requireFollowing(): void {
    if (this.status === 'promoting') throw problem('resource_busy', undefined, { resource_status: this.status });
  }
}
