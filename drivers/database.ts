// Database servers run by this host: hosted servers with users, databases, backups and replicas. Engines:
// drivers/database/postgresql, redis (and Valkey), mariadb. All parameters are plain values, and calls are repeated
// with the same values after a crash. Passwords are among the values: they must not appear in arguments, world-readable
// files, logs or messages.
import type { ExtensionFound } from '../core/catalog/host_facts';
import type { Desired, DriverContext } from '../core/driver';
import type {
  BackedUp,
  BackupOfServer,
  HostedServerDriver,
  HostedServerSpec,
  Measurable,
  ObservedHostedServer,
  Upgradable,
} from './hosted_server';

import type { MaskRule } from '../core/mask_rules';
import type { FollowEnd, FollowObserved, FollowWork, ImportReport, ImportWork } from './database/imports/import';
import type { MaskReport } from './database/masks/mask';

export type { BackupMade, RestoreFrom, ServerMetrics } from './hosted_server';

export type EngineId = 'postgresql' | 'mariadb' | 'redis' | 'valkey';

/** A spec with the id of its server. */
export type DatabaseServer = ServerSpec & { id: string };

export function serverOf({ id, spec }: Desired<ServerSpec>): DatabaseServer {
  return { ...spec, id };
}

/** Desired state of a server. Its id is `db_…` or `rep_…`: it names the directory, the units and the ownership mark. */
export interface ServerSpec extends HostedServerSpec {
  engine: EngineId;
  /** Version series of the catalog: 15, 7.0, 10.11. */
  version: string;
  size: { memory_mb: number; cpus: number; max_connections: number };
  storage_gb: number;
  /** With more than one, any of them takes over as the primary; absent: 1. Only in a cluster. */
  nodes?: number;
  /** null for key-value engines. */
  database_name: string | null;
  /** Password of the platform's administrator account in the server. */
  admin_password: string;
  /** Desired users, the default one first; other users made by the platform are removed. */
  users: ServerUser[];
  /**
   * PEM; TLS is required for every connection except the platform's own on the same host. `authority`: of the
   * certificate, for a server elsewhere.
   */
  tls: { certificate: string; key: string; authority?: string };
  /**
   * Makes the server a read-only replica of this server on the same host. `password`: of the primary's administrator;
   * `size`: of the primary.
   */
  replica_of: { server_id: string; port: number; password: string; size?: ServerSpec['size'] } | null;
  /** Ids of the replicas of this server: resources kept for other ids are released. Absent: unknown. */
  replicas?: string[];
  /** Keeps what point-in-time recovery needs. */
  archive: boolean;
  /** Libraries of extensions that the server loads at its start. Absent: none. */
  preloaded?: string[];
}

/** An extension that should be in the database, or should not. */
export interface ExtensionChange {
  name: string;
  isWanted: boolean;
}

/** Its version in the database, null where it is not there; or why the server refuses, as a sentence. */
export type ExtensionResult = { version: string | null } | { failure: string };

export interface ServerUser {
  username: string;
  password: string;
  /**
   * A second valid password during a rotation, for engines that support two. Adding or removing one ends no session
   * opened since it was added.
   */
  previous_password?: string;
  /** The user of which this is a second login, for engines with one password per login: equal to it in everything. */
  second_of?: string;
  access: 'admin' | 'read_write' | 'read_only';
}

/** Login of a user for a pooler: not the password, but its stored verifier (RFC 5803). */
export interface ServerLogin {
  username: string;
  verifier: string;
}

/** Connection data of a server for a pooler. */
export interface PooledServer {
  /** Directory of the socket; `socket_key` changes when the directory is recreated. */
  socket_directory: string;
  socket_key: string;
  /** Port number in the name of the socket. */
  port: number;
  /** Tells clients of each change of `search_path`: PostgreSQL 18 and newer. */
  reports_search_path: boolean;
  logins: ServerLogin[];
}

/** Observed state of a server. */
export interface ObservedServer extends ObservedHostedServer {
  storage_used_bytes: number | null;
  /** Over its storage limit: writes are rejected until space is freed. */
  full: boolean;
  replication_lag_seconds: number | null;
}

/**
 * `observe` verifies that the server on the port is the expected one before it sends any query. `ensure` creates the
 * data directory, writes the configuration, starts or stops the server, and applies users, databases and the storage
 * limit of the spec. It never shrinks storage, and never deletes data.
 */
export interface EngineDriver extends HostedServerDriver<ServerSpec, ObservedServer>, EngineCapabilities {
  readonly name: EngineId;
  /** A replica cannot follow its primary across a restore or an upgrade: it must be recreated. */
  readonly replicasEnd?: true;
}

/** Further operations of database servers. */
interface EngineCapabilities extends Measurable<ServerSpec>, Upgradable<ServerSpec>, BackedUp<ServerSpec> {
  /**
   * Whether the data of an existing server are on this host, including data set aside by a pending restore or upgrade.
   * False where the directory was removed, or its disk is not mounted.
   */
  hasData(id: string): Promise<boolean>;
  /** Makes a replica an independent server. @throws DriverError unsupported */
  promote(r: Desired<ServerSpec>, ctx: DriverContext): Promise<void>;
  /**
   * The running server, for a pooler; only for engines with pooling. @throws DriverError transient where it does not
   * respond
   */
  pooled?(server: { id: string; port: number }): Promise<PooledServer>;
  /**
   * What in the running database would tell a second login from its user, for a sentence; null: nothing. Only for
   * engines with second logins.
   */
  secondLoginDiffers?(r: Desired<ServerSpec>, ctx: DriverContext): Promise<string | null>;
  /**
   * Creates and drops extensions in the database of the running server, in this order; only for engines that have them.
   * @throws DriverError transient where it does not respond
   */
  changeExtensions?(
    r: Desired<ServerSpec>,
    changes: readonly ExtensionChange[],
    ctx: DriverContext,
  ): Promise<ExtensionResult[]>;
  /** Extensions that the running server can have, where the host does not know it. @throws DriverError transient */
  availableExtensions?(r: Desired<ServerSpec>, ctx: DriverContext): Promise<ExtensionFound[]>;
  /**
   * Brings data of a stranger into the running server, with the rights of the owner of the database alone. A call that
   * was killed is repeated with `previous`, the last report of it.
   * @throws DriverError invalid with the line and the reason; the database is then as it was before
   */
  importData?(r: Desired<ServerSpec>, work: ImportWork, ctx: DriverContext): Promise<ImportReport>;
  /**
   * Fills a new server, which is stopped, with a backup whose values the rules have replaced. Before that, only the
   * platform can connect to it; nothing of the old values is left in its files. A repeated call joins the first one, or
   * begins anew where that was killed.
   * @throws DriverError invalid with the rule that does not fit, as a sentence
   */
  copyMasked?(
    r: Desired<ServerSpec>,
    from: BackupOfServer,
    rules: readonly MaskRule[],
    ctx: DriverContext,
  ): Promise<MaskReport>;
  /** Looks at the follower of an import, which works in the background; starts it where it does not run. */
  followSource?(r: Desired<ServerSpec>, work: FollowWork): Promise<FollowObserved>;
  /**
   * Ends the follower, and removes what it made here and at the source. `r`: null where the server is gone.
   * @throws DriverError transient where the source does not answer
   */
  endFollowing?(r: Desired<ServerSpec> | null, work: FollowEnd): Promise<void>;
}
