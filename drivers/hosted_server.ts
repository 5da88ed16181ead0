// Servers run by this host for tenants: a database, a pooler, later a registry or a mail server. Each is a process with
// its own directory, port, credentials and log. It is a regular resource, so its driver passes the suite of
// test/conformance; features of some servers only are separate capabilities (docs/decisions/0023).
import type { Desired, DriverContext, ResourceDriver } from '../core/driver';
import type { LogChunk } from './runtime';

/** Desired state common to all servers. */
export interface HostedServerSpec {
  /** Number of the operating system user, like the `tenant` of a unit. */
  tenant: number;
  /** Network of the project, like the `network` of a unit. */
  network?: string;
  port: number;
  /** false: the data are kept, and no process runs. */
  running: boolean;
  /** Its processes give way to those of other servers. */
  low_priority?: true;
  /** CIDRs allowed to connect, in addition to the host itself; empty = the loopback interface only. */
  allowed_sources: string[];
}

/** Observed state common to all servers. */
export interface ObservedHostedServer {
  state: 'starting' | 'running' | 'stopped' | 'failed';
  /** Reason for users where `state` is failed. */
  reason: string | null;
}

export interface HostedServerDriver<S extends HostedServerSpec, O extends ObservedHostedServer> extends ResourceDriver<
  S,
  O
> {
  /** Stops the processes, those of interrupted calls too, and keeps the directory. Absent is success. */
  stop(id: string, ctx: DriverContext): Promise<void>;
  /** `remove` without a spec: stops the processes, and removes the directory. Absent is success. */
  forget(id: string, ctx: DriverContext): Promise<void>;
  /** Lines of the server's log after a position, as in RuntimeDriver.readLog. */
  readLog(id: string, position: string | null): Promise<LogChunk>;
}

/** Capability: usage of a running server. */
export interface Measurable<S> {
  metrics(r: Desired<S>, ctx: DriverContext): Promise<ServerMetrics>;
}

export interface ServerMetrics {
  connections: number | null;
  memory_bytes: number | null;
  cpu_seconds: number | null;
  /** Since the start of the server. */
  transactions: number | null;
  read_operations: number | null;
  write_operations: number | null;
}

/** Capability: upgrades to another version of the program. */
export interface Upgradable<S> {
  /** Installed series that the driver supports, newest first. */
  versions(): Promise<string[]>;
  /**
   * Upgrades the data to the version of the spec; the old data are kept until the new server responds, and put back if
   * it fails.
   */
  upgrade(r: Desired<S>, fromVersion: string, ctx: DriverContext): Promise<void>;
}

/** A backup has its own directory below the backups of the platform, and outlives the server. */
export interface BackupMade {
  size_bytes: number;
  /**
   * Metadata for a restore: version, time, position. Plain JSON without secrets. `missing`: sentences for users on what
   * the backup does not hold.
   */
  manifest: Record<string, string | number>;
}

/** A file of a backup that is read. `size_bytes`: of the whole file, null where it is unknown. */
export interface OpenedBackup {
  stream: NodeJS.ReadableStream;
  file_name: string;
  size_bytes: number | null;
}

/** Source of a restore: a backup and, with `until`, the changes after it. */
export interface RestoreFrom {
  /** Id of this restore: a repeated call continues it, or finds that it is done. */
  id: string;
  /** Server of the backup and the archive. */
  server_id: string;
  backup_id: string | null;
  /** RFC 3339; null = the state of the backup. */
  until: string | null;
}

/** A backup of a server, without changes after it. */
export interface BackupOfServer {
  server_id: string;
  backup_id: string;
}

/** RFC 3339. `gaps`: moments within it that no backup leads to, first and last. */
export interface RecoveryWindow {
  earliest: string;
  latest: string;
  gaps?: { from: string; to: string }[];
}

/** Capability: backup and restore of the data. */
export interface BackedUp<S> {
  /** Makes the backup; a repeated call with the same id finds it or makes it anew. @throws DriverError unsupported */
  backup(r: Desired<S>, backupId: string, ctx: DriverContext): Promise<BackupMade>;
  removeBackup(serverId: string, backupId: string, ctx: DriverContext): Promise<void>;
  /** The backup as a stream for a download, from a byte on. */
  openBackup(serverId: string, backupId: string, from?: number): Promise<OpenedBackup>;
  /** Uploads pending archives to the operator's store, for engines with archives. @returns number of files */
  storeArchives?(ctx: DriverContext): Promise<number>;
  /** The recovery window; null where the engine has none. */
  window(id: string, ctx: DriverContext): Promise<RecoveryWindow | null>;
  /**
   * Restores the data of a backup or of a point in time. The old data are kept until the restored server
   * responds, and put back if it does not. Repeatable after a crash.
   */
  restore(r: Desired<S>, from: RestoreFrom, ctx: DriverContext): Promise<void>;
  /**
   * Checks a server that was restored from the backup, for engines of this host: its catalog and its data are read
   * whole, and counted beside what the backup held. The server may be stopped afterwards.
   * @param assertion query of the owner that has to return true; null: none
   * @returns how many rows, or keys, there are
   * @throws DriverError invalid, with what is not whole, as a sentence
   */
  verifyRestored?(
    r: Desired<S>,
    from: BackupOfServer,
    assertion: string | null,
    ctx: DriverContext,
  ): Promise<{ rows: number }>;
}
