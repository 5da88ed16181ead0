// The kind `database`. The file of that name in this folder is the SQL layer of the control plane itself.
import { databasePackageRows, defaultPortOf, isKeyValue, type DatabasePackageRow } from '../../core/catalog/catalogs';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { mintId } from '../../core/ids';
import type { MaskRule } from '../../core/mask_rules';
import { defineStates } from '../../core/states';
import type {
  CreateDatabaseInput,
  DatabaseCredentials,
  RotateDatabasePasswordInput,
  UpdateDatabaseInput,
  UpgradeDatabaseInput,
  DatabaseStatus,
} from '../../schema/types';
import { isKept, type Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import type { Values } from '../../db/table';
import type { Billing } from '../base/metering';
import { DatabaseEndpoint } from './database_endpoint';
import { requireReplicasFollow } from './database_replica/size';
import { DatabaseUser } from './database_user';
import { requireCapacity, allocatePort } from '../reference/capacity';
import { credentialsOf, newPassword, sealAdminPassword } from './database/credentials';
import { requireNewerVersion, requireOneNode, requirePackage, requireStorage } from './database/offer';
import { requireOriginInProject, type Moment, type Origin, type Window } from './database/origin';
import {
  mergedSchedule,
  mergedWindow,
  planDatabase,
  storageTooLow,
  type BackupSchedule,
  type DatabasePlan,
  type MaintenanceWindow,
} from './database/plan';
import { databaseBin, removeAlongWith } from './database/bin';
import { requireDetached } from './database/dependents';
import { checkQuotas, requireRoom } from '../base/quota';
import { requestedChanges } from '../base/requested_changes';
import { named } from '../../db/statement';

const LOCK = named('select 1 from databases where id = $1 and deleted_at is null for no key update');
const STORAGE = { resource: 'database_storage_gb', sum: 'storage_gb' };
const NODES_STAY =
  'A database keeps its number of nodes. Restore a backup into a new database with a package of one node, or create ' +
  'one with automatic failover and import the data.';
const RESTORED_ELSEWHERE =
  'A database with automatic failover cannot be restored in place yet. Restore the backup into a new database ' +
  '(`restore_from`) with a package of one node.';
const SETTLED = ['available', 'stopped', 'failed'];

/** A database server with its data. */
export class ManagedDatabase extends Resource {
  static readonly table = 'databases';
  static readonly kind = 'database';
  static readonly idPrefix = 'db';
  // In the bin it is on the disk alone.
  static override readonly reserves = `select case when deleted_at is null then database_package end
    as database_package, nodes, nodes * storage_gb as storage_gb from databases
    where not on_cluster and (deleted_at is null or ${isKept('databases')})`;
  static override readonly projectChild = 'databases';
  static override readonly filters = {
    name: 'name = ?',
    engine: 'engine = ?',
    status: 'status = ?',
    region: 'region = ?',
    database_package: 'database_package = ?',
  };
  static override readonly sorts = ['name', 'updated_at'];
  static override readonly quotas = [{ resource: 'databases' }, STORAGE];
  static override readonly bin: Bin<ManagedDatabase> = databaseBin;
  static readonly billing: Billing = { price: { column: 'database_package' }, quantity: 'nodes' };
  static override readonly states = defineStates<DatabaseStatus>({
    initial: ['provisioning'],
    transitional: ['provisioning', 'updating', 'upgrading', 'restoring', 'restarting', 'stopping', 'starting'],
    moves: {
      provisioning: ['available', 'failed'],
      available: ['updating', 'upgrading', 'restoring', 'restarting', 'stopping'],
      updating: ['available'],
      upgrading: ['available'],
      restoring: ['available'],
      restarting: ['available'],
      stopping: ['stopped'],
      stopped: ['starting'],
      starting: ['available'],
      // By itself, where its server answers after all.
      failed: ['available'],
    },
  });

  declare name: string;
  declare engine: string;
  declare engine_version: string;
  /** The version of an upgrade that is under way. */
  declare wanted_version: string | null;
  declare database_package: string;
  declare nodes: number;
  declare storage_gb: number;
  declare region: string;
  declare database_name: string | null;
  declare username: string;
  declare backup_schedule: BackupSchedule;
  declare maintenance_window: MaintenanceWindow;
  declare deletion_protection: boolean;
  declare proof_assertion: string | null;
  declare recovery_seconds: number | null;
  declare restore_from: { database_id: string; backup_id: string | null; point_in_time: string | null } | null;
  declare mask: MaskRule[] | null;
  declare unmasked_columns: string[];
  declare preview_id: string | null;
  /** The database for which it stands in the preview. */
  declare preview_of: string | null;
  /** Of a restore that is under way. */
  declare restoring_from: Omit<Origin, 'engine_version'> | null;
  declare point_in_time_window: Window | null;
  declare running: boolean;
  declare port: number;
  /** Its server runs in a pod of the cluster, not on the host; it stays where it began. */
  declare on_cluster: boolean;
  declare server_id: string;
  declare tenant: number;
  /** Sealed, see models/databases/database/credentials.ts. */
  declare admin_password: string;
  declare system_identifier: string | null;
  declare tls_certificate: string | null;
  /** Sealed. */
  declare tls_key: string | null;
  declare status: DatabaseStatus;
  declare status_reason: string | null;

  /**
   * With its default user and its private endpoint. @throws as planDatabase, quota_exceeded, capacity_unavailable,
   * name_taken
   */
  static async create(ctx: Context, input: CreateDatabaseInput): Promise<ManagedDatabase> {
    const plan = await planDatabase(ctx, input);
    await checkQuotas(ctx, ManagedDatabase, ctx.project?.id, plan.values);
    if (!plan.on_cluster) await requireCapacity(ctx, capacityOf(plan.package, plan.storage_gb));
    const database = await ManagedDatabase.insert(ctx, { ...plan.values, ...(await newServer(ctx, plan)) });
    await DatabaseUser.addDefault(ctx, database);
    await DatabaseEndpoint.addDefault(ctx, database);
    return database;
  }

  /**
   * The database, locked against changes of its children. For operations that address a child, whose If-Match is meant.
   * @throws not_found
   */
  static async ofChild(ctx: Context, id: string): Promise<ManagedDatabase> {
    const database = await ManagedDatabase.get(ctx, id);
    const [held] = await ctx.sql.query(LOCK, [id]);
    if (!held) throw problem('not_found');
    return database;
  }

  /**
   * @throws reference_not_found, engine_feature_unsupported, storage_must_increase, resource_busy, invalid_state,
   * quota_exceeded, capacity_unavailable
   */
  async change(ctx: Context, input: UpdateDatabaseInput): Promise<this> {
    const resized = await this.resized(ctx, input);
    this.requireStatus(resized ? ['available'] : SETTLED);
    if (resized) await this.requireMore(ctx, resized);
    if (input.proof_assertion != null) requireSql(this.engine);
    return this.update(ctx, {
      ...(input.proof_assertion !== undefined && { proof_assertion: input.proof_assertion }),
      ...(input.name != null && { name: input.name }),
      ...(input.backup_schedule != null && {
        backup_schedule: await mergedSchedule(ctx, this, this.backup_schedule, input.backup_schedule),
      }),
      ...(input.maintenance_window != null && {
        maintenance_window: mergedWindow(this.maintenance_window, input.maintenance_window),
      }),
      ...(input.deletion_protection != null && { deletion_protection: input.deletion_protection }),
      ...(resized && {
        status: 'updating',
        status_reason: null,
        database_package: resized.package.id,
        nodes: resized.package.nodes,
        storage_gb: resized.storage_gb,
      }),
    });
  }

  /** @throws deletion_protected, resource_in_use while attached */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    await requireDetached(ctx, this.id);
    await removeToBin(ctx, this, { along: await removeAlongWith(ctx, this) });
  }

  /** @throws invalid_state, resource_busy */
  start(ctx: Context): Promise<this> {
    return this.move(ctx, 'starting', { running: true });
  }

  /** @throws invalid_state, resource_busy */
  stop(ctx: Context): Promise<this> {
    return this.move(ctx, 'stopping', { running: false });
  }

  /** @throws invalid_state, resource_busy */
  restart(ctx: Context): Promise<this> {
    return this.move(ctx, 'restarting');
  }

  /**
   * @throws engine_version_unsupported, engine_feature_unsupported where it has replicas and the version none,
   * invalid_state, resource_busy
   */
  async upgrade(ctx: Context, input: UpgradeDatabaseInput): Promise<this> {
    const wanted_version = await requireNewerVersion(ctx, this, input.engine_version);
    await requireReplicasFollow(ctx, this, wanted_version);
    return this.move(ctx, 'upgrading', { wanted_version });
  }

  /**
   * @throws reference_not_found, backup_not_ready, point_in_time_unavailable, engine_feature_unsupported,
   * engine_version_unsupported, invalid_state, resource_busy
   */
  async restore(ctx: Context, moment: Moment): Promise<this> {
    requireOneNode(this, RESTORED_ELSEWHERE);
    const { backup_id, point_in_time } = await requireOriginInProject(ctx, this, moment);
    return this.move(ctx, 'restoring', { restoring_from: { backup_id, point_in_time } });
  }

  /** How to connect as the default user. */
  async credentials(ctx: Context): Promise<DatabaseCredentials> {
    const user = await DatabaseUser.defaultOf(ctx, this.id);
    return credentialsOf(ctx, this, { ...user.credentials(ctx), previous_until: user.previous_until });
  }

  /** A new password for the default user. @throws invalid_state, resource_busy */
  async rotate(ctx: Context, input: RotateDatabasePasswordInput): Promise<DatabaseCredentials> {
    const user = await DatabaseUser.defaultOf(ctx, this.id);
    await user.rotate(ctx, this, input);
    return this.credentials(ctx);
  }

  // Package and storage as they would be; null where neither changes.
  private async resized(ctx: Context, input: UpdateDatabaseInput): Promise<Resized | null> {
    const { database_package, storage_gb: asked } = requestedChanges(input, this);
    if (database_package === undefined && asked === undefined) return null;
    const pack = await requirePackage(ctx, this.engine, input.database_package ?? this.database_package);
    const least = Math.max(this.storage_gb, pack.storage_gb);
    const storage_gb = input.storage_gb ?? least;
    if (storage_gb < this.storage_gb) throw storageTooLow(this.storage_gb);
    if (pack.id === this.database_package && storage_gb === this.storage_gb) return null;
    requireStorage(pack, storage_gb);
    if (pack.nodes !== this.nodes)
      requireOneNode({ engine: this.engine, nodes: Math.max(pack.nodes, this.nodes) }, NODES_STAY);
    return { package: pack, storage_gb };
  }

  private async requireMore(ctx: Context, resized: Resized): Promise<void> {
    const added = resized.storage_gb - this.storage_gb;
    await requireRoom(ctx, ManagedDatabase, this.project_id, STORAGE, added);
    // The cluster says whether it has room.
    if (this.on_cluster) return;
    const present = databasePackageRows(await ctx.catalogs.facts()).find(({ id }) => id === this.database_package);
    const had = present ? capacityOf(present, this.storage_gb) : { memory_mb: 0, storage_gb: this.storage_gb };
    const has = capacityOf(resized.package, resized.storage_gb);
    await requireCapacity(ctx, {
      memory_mb: has.memory_mb - had.memory_mb,
      storage_gb: has.storage_gb - had.storage_gb,
    });
  }
}

/** @throws engine_feature_unsupported */
function requireSql(engine: string): void {
  if (!isKeyValue(engine)) return;
  throw problem('engine_feature_unsupported', `${engine} runs no SQL, so its backups have no assertion.`, {
    engine,
    feature: 'proof_assertion',
  });
}

interface Resized {
  package: DatabasePackageRow;
  storage_gb: number;
}

function capacityOf(
  { nodes, memory_mb }: DatabasePackageRow,
  storage_gb: number,
): { memory_mb: number; storage_gb: number } {
  return { memory_mb: nodes * memory_mb, storage_gb: nodes * storage_gb };
}

/** What the platform gives the server: the id comes first, for the secret is bound to it. */
async function newServer(
  ctx: Context,
  { on_cluster, values }: Pick<DatabasePlan, 'on_cluster' | 'values'>,
): Promise<Values> {
  const id = mintId(ManagedDatabase.idPrefix);
  const admin_password = sealAdminPassword(ctx.secrets, id, newPassword());
  // In the cluster each has an address of its own.
  const port = on_cluster ? defaultPortOf(String(values.engine)) : await allocatePort(ctx, id);
  return { id, server_id: id, admin_password, port };
}
