// Database servers that this host runs: hosted servers with users, databases, backups and replicas. One engine a
// folder: drivers/database/postgresql, redis (and Valkey), mariadb. Plain values only, called again with the same
// values after a crash. Passwords are in the values: they never get into arguments, files that others may read, logs or
// messages.
import type { Desired, DriverContext } from '../core/driver';
import type {
  BackedUp,
  HostedServerDriver,
  HostedServerSpec,
  Measurable,
  ObservedHostedServer,
  Upgradable,
} from './hosted_server';

export type { BackupMade, RestoreFrom, ServerMetrics } from './hosted_server';

export type EngineId = 'postgresql' | 'mariadb' | 'redis' | 'valkey';

/** A spec with the id of its server. */
export type DatabaseServer = ServerSpec & { id: string };

export function serverOf({ id, spec }: Desired<ServerSpec>): DatabaseServer {
  return { ...spec, id };
}

/**
 * What a server should be. Its id is `db_…` or `rep_…`: it names the directory, the units and the mark of ownership.
 */
export interface ServerSpec extends HostedServerSpec {
  engine: EngineId;
  /** Series as the catalog names it: 15, 7.0, 10.11. */
  version: string;
  size: { memory_mb: number; cpus: number; max_connections: number };
  storage_gb: number;
  /** null for key-value engines. */
  database_name: string | null;
  /** Password of the platform's own administrator in the server. */
  admin_password: string;
  /** Users that should be there, the default one first; others that the platform made are removed. */
  users: ServerUser[];
  /** PEM; TLS is required of every connection that does not come through the platform itself. */
  tls: { certificate: string; key: string };
  /**
   * Follows this server of the same host and takes reads only. `password`: of its administrator; `size`: of that
   * server.
   */
  replica_of: { server_id: string; port: number; password: string; size?: ServerSpec['size'] } | null;
  /**
   * Ids of the servers that follow this one: what an engine keeps for others is released. Unknown where it is not
   * given.
   */
  replicas?: string[];
  /** Keeps what a restore to a point in time needs. */
  archive: boolean;
}

export interface ServerUser {
  username: string;
  password: string;
  /**
   * Valid beside it, for engines that know several passwords of a user. To add one and to take one away ends no session
   * that was opened since it was added.
   */
  previous_password?: string;
  access: 'admin' | 'read_write' | 'read_only';
}

/** What a pooler must know of a user: not the password, but what a server keeps of it (RFC 5803). */
export interface ServerLogin {
  username: string;
  verifier: string;
}

/** A server as a pooler meets it. */
export interface PooledServer {
  /** Directory of its socket; `socket_key` is another one when the directory was made anew. */
  socket_directory: string;
  socket_key: string;
  /** In the name of the socket. */
  port: number;
  logins: ServerLogin[];
}

/** What a server is. */
export interface ObservedServer extends ObservedHostedServer {
  storage_used_bytes: number | null;
  /** Over its storage: writes are refused until there is room. */
  full: boolean;
  replication_lag_seconds: number | null;
}

/**
 * `observe` verifies that the server that answers on the port is ours before anything is asked of it. `ensure` makes
 * the data directory, writes the configuration, starts or stops the server, and brings users, databases and the storage
 * limit to the spec. It never shrinks, and never deletes data.
 */
export interface EngineDriver extends HostedServerDriver<ServerSpec, ObservedServer>, EngineCapabilities {
  readonly name: EngineId;
  /** A replica cannot follow its primary over a restore or an upgrade: it has to be made anew. */
  readonly replicasEnd?: true;
}

/** What a database server can do beside. */
export interface EngineCapabilities extends Measurable<ServerSpec>, Upgradable<ServerSpec>, BackedUp<ServerSpec> {
  /**
   * Whether the data of a server that has had some are on this host, those included that a restore or an upgrade under
   * way has put aside. False where their directory was removed, or its disk is not mounted.
   */
  hasData(id: string): Promise<boolean>;
  /** Makes a replica a server of its own. @throws DriverError unsupported */
  promote(r: Desired<ServerSpec>, ctx: DriverContext): Promise<void>;
  /**
   * The running server for a pooler; only of engines that can be pooled. @throws DriverError transient when it does not
   * answer
   */
  pooled?(server: { id: string; port: number }): Promise<PooledServer>;
}
