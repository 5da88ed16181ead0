import type { Config } from '../../core/config';
import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { limits } from '../../core/limits';
import { mintId } from '../../core/ids';
import { defineStates } from '../../core/states';
import type {
  CreateDatabaseEndpointInput,
  DatabaseEndpointAccess,
  DatabaseEndpointStatus,
  DatabaseEndpointTarget,
  UpdateDatabaseEndpointInput,
} from '../../schema/types';
import { Resource } from '../base/resource';
import { requestedChanges } from '../base/requested_changes';
import type { Values } from '../../db/table';
import { requireUnattached } from './database_attachment/in_use';
import { refreshVariables } from './database_attachment/variables';
import {
  endpointPort,
  requireOnHost,
  requirePool,
  requireSpreading,
  requireUnpooled,
  type PoolMode,
} from './database_endpoint/placement';
import { DatabaseReplica } from './database_replica';
import type { ManagedDatabase } from './database';
import { endpointHost, serviceOf } from './database/credentials';
import { wakeDatabase } from './database/wake';
import { requireFeature } from './database/offer';

/** An address of a database: its port, allowed clients, and whether connections go to the primary or to replicas. */
export class DatabaseEndpoint extends Resource {
  static readonly table = 'database_endpoints';
  static readonly kind = 'database_endpoint';
  static readonly idPrefix = 'dbe';
  static override readonly parentLimit = {
    column: 'database_id',
    max: limits.endpointsPerDatabase,
    resource: 'endpoints',
    parent: 'A database',
    rows: 'endpoints',
  };
  static override readonly filters = { access: 'access = ?', target: 'target = ?', status: 'status = ?' };
  static override readonly sorts = ['name'];
  static override readonly states = defineStates<DatabaseEndpointStatus>({
    initial: ['provisioning'],
    transitional: ['provisioning', 'updating'],
    moves: {
      provisioning: ['active', 'failed'],
      active: ['updating', 'failed'],
      updating: ['active', 'failed'],
      failed: ['updating', 'active'],
    },
  });

  declare database_id: string;
  /** Of `target: replicas`; null = all of them. */
  declare replica_id: string | null;
  declare name: string;
  declare access: DatabaseEndpointAccess;
  declare target: DatabaseEndpointTarget;
  declare allowed_sources: string[];
  declare pool_mode: PoolMode | null;
  declare pool_size: number | null;
  /** The server's port, or a separate one for a pool or several replicas. */
  declare port: number;
  /** Name of the Service in the cluster; null: of this host. */
  declare host: string | null;
  declare is_default: boolean;
  declare status: DatabaseEndpointStatus;
  declare status_reason: string | null;

  /**
   * A further endpoint of a database that the caller holds (`ManagedDatabase.ofChild`).
   * @throws reference_not_found, validation_failed, engine_feature_unsupported, invalid_state, resource_busy,
   * name_taken, quota_exceeded, capacity_unavailable
   */
  static async create(
    ctx: Context,
    database: ManagedDatabase,
    input: CreateDatabaseEndpointInput,
  ): Promise<DatabaseEndpoint> {
    const { name, access, allowed_sources = [] } = input;
    const target = input.target ?? 'primary';
    if (access === 'public') requireOnHost(database);
    const replica = input.replica_id
      ? await DatabaseReplica.ofDatabase(ctx, database.id, input.replica_id, 'replica_id')
      : null;
    const pool = await requirePool(ctx, database, input.pool_mode ?? null, input.pool_size ?? null);
    if (target === 'replicas') await requireFeature(ctx, database, 'replicas');
    if (target === 'replicas' && !replica) await requireSpreading(ctx, database, pool.pool_mode);
    replica?.requireFollowing();
    const id = mintId(DatabaseEndpoint.idPrefix);
    const port = await endpointPort(ctx, id, pool.pool_mode, target === 'primary' ? database : replica);
    const host = serviceOf(ctx.config, database);
    const place = { database_id: database.id, replica_id: replica?.id ?? null, host, port };
    const made = await DatabaseEndpoint.insert(ctx, {
      id,
      ...place,
      ...pool,
      name,
      target,
      access: access ?? 'private',
      allowed_sources,
    });
    await wakeDatabase(ctx.sql, database.id);
    return made;
  }

  /** The private endpoint that each database has from its beginning. */
  static addDefault(
    ctx: Context,
    database: Pick<ManagedDatabase, 'id' | 'project_id' | 'port' | 'server_id' | 'on_cluster'>,
  ): Promise<DatabaseEndpoint> {
    const { id, project_id, port } = database;
    return DatabaseEndpoint.insert(ctx, {
      project_id,
      database_id: id,
      host: serviceOf(ctx.config, database),
      name: 'default',
      access: 'private',
      target: 'primary',
      port,
      is_default: true,
    });
  }

  /**
   * Name, sources and pooling; the caller holds the database. Variables of attachments follow where the port changes.
   * @throws validation_failed, engine_feature_unsupported, name_taken, capacity_unavailable
   */
  async change(ctx: Context, database: ManagedDatabase, input: UpdateDatabaseEndpointInput): Promise<this> {
    const { name, allowed_sources, ...pool } = requestedChanges(input, this);
    const acting: Values = {
      ...(allowed_sources != null && { allowed_sources: this.sources(allowed_sources) }),
      ...(await this.pooling(ctx, database, pool)),
    };
    const acts = Object.keys(acting).length > 0;
    const { port } = this;
    const status = this.status === 'provisioning' ? 'provisioning' : 'updating';
    await this.update(ctx, {
      ...acting,
      ...(name != null && { name }),
      ...(acts && { status, status_reason: null }),
    });
    if (acts) await wakeDatabase(ctx.sql, this.database_id);
    if (this.port !== port) await refreshVariables(ctx, { database_id: this.database_id, endpoint_id: this.id });
    return this;
  }

  /** @throws resource_protected for the default one, resource_in_use where an attachment uses it */
  async destroy(ctx: Context): Promise<void> {
    if (this.is_default)
      throw problem('resource_protected', 'The default endpoint belongs to its database and cannot be deleted alone.');
    await requireUnattached(ctx, 'endpoint_id', [this.id]);
    await this.remove(ctx);
    await wakeDatabase(ctx.sql, this.database_id);
  }

  /** Name or address to connect to. */
  hostFor(config: Config): string {
    return endpointHost(config, this);
  }

  private sources(allowed_sources: string[]): string[] {
    if (this.access === 'public') return allowed_sources;
    throw validationFailed([{ field: 'allowed_sources', code: 'depends_on', detail: 'needs access to be public' }]);
  }

  private async pooling(ctx: Context, database: ManagedDatabase, input: UpdateDatabaseEndpointInput): Promise<Values> {
    if (input.pool_mode === undefined && input.pool_size === undefined) return {};
    const pool_mode = input.pool_mode === undefined ? this.pool_mode : input.pool_mode;
    const kept = pool_mode === null ? null : this.pool_size;
    const pool = await requirePool(ctx, database, pool_mode, input.pool_size === undefined ? kept : input.pool_size);
    if (this.target === 'replicas' && !this.replica_id) requireUnpooled(database, pool.pool_mode);
    return { ...pool, port: await endpointPort(ctx, this.id, pool.pool_mode, await this.server(ctx, database)) };
  }

  /** The server behind the endpoint, null = several servers. */
  private async server(ctx: Context, database: ManagedDatabase): Promise<{ port: number } | null> {
    if (this.target === 'primary') return database;
    return this.replica_id ? DatabaseReplica.get(ctx, this.replica_id, { database_id: this.database_id }) : null;
  }
}
