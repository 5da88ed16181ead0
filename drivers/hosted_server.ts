// Servers that this host runs for others: a database, a pooler, later a registry or a mail server. Each is a process
// with a directory of its own, a port, credentials and a log. It is a resource like any other, so its driver passes the
// suite of test/conformance; what only some servers can do is a capability beside it (docs/decisions/0030).
import type { Desired, DriverContext, ResourceDriver } from '../core/driver';
import type { LogChunk } from './runtime';

/** What every server should be. */
export interface HostedServerSpec {
  /** Number of the user of the operating system, as a unit's `tenant`. */
  tenant: number;
  /** As a unit's `network`: that of its project. */
  network?: string;
  port: number;
  /** false: the data stay, and no process runs. */
  running: boolean;
  /** CIDRs that may connect beside the host itself; empty = the loopback interface only. */
  allowed_sources: string[];
}

/** What every server is. */
export interface ObservedHostedServer {
  state: 'starting' | 'running' | 'stopped' | 'failed';
  /** For a sentence to users where `state` is failed. */
  reason: string | null;
}

export interface HostedServerDriver<S extends HostedServerSpec, O extends ObservedHostedServer> extends ResourceDriver<
  S,
  O
> {
  /**
   * `remove`, for whoever does not know the spec any more: stops the processes, removes the directory. Absent is
   * success.
   */
  forget(id: string, ctx: DriverContext): Promise<void>;
  /** Lines of the server's log after a position, as RuntimeDriver.readLog. */
  readLog(id: string, position: string | null): Promise<LogChunk>;
}

/** Capability: what a running server uses. */
export interface Measurable<S> {
  metrics(r: Desired<S>, ctx: DriverContext): Promise<ServerMetrics>;
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

/** Capability: the data go to another version of the program. */
export interface Upgradable<S> {
  /** Series of this host that the driver can run, newest first. */
  versions(): Promise<string[]>;
  /**
   * Brings the data to the version of the spec; the old data stay until the new server answers, and come back when it
   * fails.
   */
  upgrade(r: Desired<S>, fromVersion: string, ctx: DriverContext): Promise<void>;
}

/** A backup is in a directory of its own below the backups of the platform, and outlives the server. */
export interface BackupMade {
  size_bytes: number;
  /** What it takes to restore it: version, time, position. Plain JSON, no secret. */
  manifest: Record<string, string | number>;
}

/** Restores into the server of a spec, from a backup and, with `until`, what came after it. */
export interface RestoreFrom {
  /** Names this restore: called again with the same one, it continues or finds that it is done. */
  id: string;
  /** Server that the backup and the archive are of. */
  server_id: string;
  backup_id: string | null;
  /** RFC 3339; null = as the backup is. */
  until: string | null;
}

/** Capability: backups of the data, and data from backups. */
export interface BackedUp<S> {
  /** Makes the backup; a second call with the same id finds it or makes it anew. @throws DriverError unsupported */
  backup(r: Desired<S>, backupId: string, ctx: DriverContext): Promise<BackupMade>;
  removeBackup(serverId: string, backupId: string, ctx: DriverContext): Promise<void>;
  /** The backup as one stream for a download, and the name of its file. */
  openBackup(serverId: string, backupId: string): Promise<{ stream: NodeJS.ReadableStream; file_name: string }>;
  /** Brings archives that wait to the store of the operator; of engines that have any. @returns how many files */
  storeArchives?(ctx: DriverContext): Promise<number>;
  /** The points in time that a restore can reach; null where the engine has none. */
  window(id: string, ctx: DriverContext): Promise<{ earliest: string; latest: string } | null>;
  /**
   * Replaces the data by those of a backup or a point in time. The data from before stay until the restored server
   * answers, and come back when it does not. Repeatable after a crash.
   */
  restore(r: Desired<S>, from: RestoreFrom, ctx: DriverContext): Promise<void>;
}
