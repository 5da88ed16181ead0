// Database servers that this host runs: each one a process with a data directory, a port, credentials and a configuration
// of its own. One engine a folder: drivers/database/postgresql, redis (and Valkey), mariadb.
// Plain values only, called again with the same values after a crash. Passwords are in the values: they never get into
// arguments, files that others may read, logs or messages.
import type { DriverContext } from './driver';
import type { LogChunk } from './runtime';

export type EngineId = 'postgresql' | 'mariadb' | 'redis' | 'valkey';

/** What a server should be. */
export interface ServerSpec {
  /** `db_…` or `rep_…`: names the directory, the units and the mark of ownership. */
  id: string;
  engine: EngineId;
  /** Series as the catalog names it: 15, 7.0, 10.11. */
  version: string;
  /** Number of the user of the operating system, as a unit's `tenant`. */
  tenant: number;
  port: number;
  size: { memory_mb: number; cpus: number; max_connections: number };
  storage_gb: number;
  running: boolean;
  /** null for key-value engines. */
  database_name: string | null;
  /** Password of the platform's own administrator in the server. */
  admin_password: string;
  /** Users that should be there, the default one first; others that the platform made go away. */
  users: ServerUser[];
  /** Who may come from where, beside the host itself: CIDRs of public endpoints; empty = the loopback interface only. */
  allowed_sources: string[];
  /** PEM; TLS is required of every connection that does not come through the platform itself. */
  tls: { certificate: string; key: string };
  /** Follows this server of the same host and takes reads only. `password`: of its administrator; `size`: of that server. */
  replica_of: { server_id: string; port: number; password: string; size?: ServerSpec['size'] } | null;
  /** Ids of the servers that follow this one: what an engine keeps for others is let go. Unknown where it is not given. */
  replicas?: string[];
  /** Keeps what a restore to a point in time needs. */
  archive: boolean;
}

export interface ServerUser {
  username: string;
  password: string;
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
export interface ObservedServer {
  state: 'absent' | 'foreign' | 'stopped' | 'starting' | 'running' | 'failed';
  /** What `ensure` would still do, in words for the operator; null = as wanted. */
  differs: string | null;
  storage_used_bytes: number | null;
  /** Over its storage: writes are refused until there is room. */
  full: boolean;
  replication_lag_seconds: number | null;
  /** For a sentence to users where `state` is failed. */
  reason: string | null;
}

export interface ServerMetrics {
  connections: number | null;
  memory_bytes: number | null;
  cpu_seconds: number | null;
  /** Since the server's start. */
  transactions: number | null;
  read_operations: number | null;
  write_operations: number | null;
}

/** A backup lies in a directory of its own below the backups of the platform. */
export interface BackupMade {
  size_bytes: number;
  /** What it takes to restore it: version, time, position. Plain JSON, no secret. */
  manifest: Record<string, string | number>;
}

/** Restores into the empty place of `spec`, from a backup and, with `until`, what came after it. */
export interface RestoreFrom {
  /** Names this restore: called again with the same one, it goes on or finds that it is done. */
  id: string;
  /** Server that the backup and the archive are of. */
  server_id: string;
  backup_id: string | null;
  /** RFC 3339; null = as the backup is. */
  until: string | null;
}

export interface EngineDriver {
  readonly engine: EngineId;
  /** A replica cannot follow its primary over a restore or an upgrade: it has to be made anew. */
  readonly replicasEnd?: true;
  /** Series of this host that the driver can run, newest first. */
  versions(): Promise<string[]>;

  /** Looks, never modifies. Verifies that the server that answers on the port is ours before anything is asked of it. */
  observe(spec: ServerSpec, ctx: DriverContext): Promise<ObservedServer>;
  /**
   * One bounded idempotent step towards the spec: data directory made, configuration written, server started or stopped,
   * users and databases as wanted, storage limit kept. `requeueMs` asks for the next call. Never shrinks, never deletes data.
   * @throws DriverError
   */
  ensure(spec: ServerSpec, ctx: DriverContext): Promise<{ requeueMs?: number }>;
  /** Stops the server and takes directory and archive away, backups not. Absent is success. */
  remove(id: string, ctx: DriverContext): Promise<void>;
  /** Ids of all servers of this engine on this host. */
  list(ctx: DriverContext): Promise<string[]>;

  /** Makes the backup; a second call with the same id finds it or makes it anew. @throws DriverError unsupported */
  backup(spec: ServerSpec, backupId: string, ctx: DriverContext): Promise<BackupMade>;
  removeBackup(serverId: string, backupId: string, ctx: DriverContext): Promise<void>;
  /** The backup as one stream for a download, and the name of its file. */
  openBackup(serverId: string, backupId: string): Promise<{ stream: NodeJS.ReadableStream; file_name: string }>;
  /** How far back and forth a point in time can be; null where the engine has none. */
  window(id: string, ctx: DriverContext): Promise<{ earliest: string; latest: string } | null>;
  /**
   * Puts the data of a backup or a point in time in place of what `spec` has. What was there is kept aside until the
   * restored server answers, and comes back when it does not. Repeatable after a crash.
   */
  restore(spec: ServerSpec, from: RestoreFrom, ctx: DriverContext): Promise<void>;
  /** Brings the data to the version of `spec`; the old data stay until the new server answers, and come back when it fails. */
  upgrade(spec: ServerSpec, fromVersion: string, ctx: DriverContext): Promise<void>;
  /** Makes a replica a server of its own. */
  promote(spec: ServerSpec, ctx: DriverContext): Promise<void>;

  /** The running server for a pooler; only of engines that can be pooled. @throws DriverError transient when it does not answer */
  pooled?(server: Pick<ServerSpec, 'id' | 'port'>): Promise<PooledServer>;

  metrics(spec: ServerSpec, ctx: DriverContext): Promise<ServerMetrics>;
  /** Lines of the server's log after a position, as RuntimeDriver.readLog. */
  readLog(id: string, position: string | null): Promise<LogChunk>;
}
