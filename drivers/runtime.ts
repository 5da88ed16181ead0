// The runtime, which runs instances of process types (services), builds and release commands (tasks) as units. A unit
// outlives the control plane: it is found again by its id, its process id and the start time of that process.
import type { ImageHealthCheck } from '../core/protocols/image_settings';
import type { DriverContext, Fingerprint } from '../core/driver';
import type { UserRange } from './image/owners';
import type { ForwardedPort } from './network';
import type { NetworkLocation } from '../core/outbound/network_location';

export interface UnitSpec {
  /**
   * `ins_…` of an instance, `run_…` of a run, `dep_….build` and `dep_….release` of a deployment. Names the run
   * directory: starting twice meets the same unit.
   */
  id: string;
  kind: 'service' | 'task';
  /** Run by `sh -c` in `directory`, after `.platform/profile` where a build has left one. */
  command: string;
  /**
   * Host path of the files. A service gets a private copy, removed with the unit; a task works in the directory itself,
   * unless it has `own_copy`.
   */
  directory: string;
  /** A task that is a program of the tenant, like a service: with a copy of the files, and with ordinary priority. */
  own_copy?: true;
  /** A service that gives way to others, like a task: with the priority of one, and without a quota of cores. */
  low_priority?: true;
  /** Below `directory`, where the command starts; '.' is the directory itself. */
  root_directory: string;
  /**
   * Further directories of the host that the unit may write: the build cache (same path inside), volumes at their mount
   * path.
   */
  mounts: { source: string; target: string }[];
  /** Directories of the host that the unit may read, at the same path: programs outside of the system directories. */
  readable?: string[];
  /**
   * All variables of the unit's environment, except that the runtime sets PATH, HOME, LANG and TMPDIR if they are
   * absent.
   */
  env: Record<string, string>;
  /**
   * Number of the tenant: units of one application share a user of the operating system, if the host can assign users.
   */
  tenant: number;
  limits: UnitLimits;
  /**
   * Where its standard input comes from; absent: it has none. Of a `pipe` the control plane is the writer, and may come
   * and go; a `terminal` is one that standard input, output and error share (drivers/runtime/attachment.ts).
   */
  input?: 'pipe' | 'terminal';
  /** The unit creates nested sandboxes, as image builds do: it may create namespaces, and mount in them. */
  nested?: boolean;
  /**
   * Directory with files of several users, whose range of user ids the unit gets, where the host has ranges
   * (drivers/runtime/sandbox/user_ranges.ts): a build as a user namespace in a file descriptor, an image as the users
   * that its programs and its files have.
   */
  user_range?: string;
  /**
   * Name of the isolated network that the unit shares with others of its project; absent: the network of the host.
   */
  network?: string;
  /**
   * The unit gets an isolated network, connected to its project's: the program listens at `port`, which other units may
   * use too, and is reached at `reached_at`. Only if the runtime `exposesPorts`.
   */
  exposed?: { port: number; reached_at: number };
  /** In an isolated network: the port on which the unit listens; also forwarded from 127.0.0.1 of the host. */
  published_port?: number;
  /**
   * Id of a running unit that the command enters: it sees the processes, files, memory and network of that unit, has
   * its rights and its limits, and ends with it. The spec has the files, root directory, tenant and image of that unit,
   * no mounts and no network.
   */
  within?: string;
  /** The unit runs in an image whose root is `directory`; tasks get a private copy too. */
  image?: UnitImage;
}

export interface UnitImage {
  /** Executed without a shell. null: `command` is run by the shell of the image. */
  command: string[] | null;
  /** Variables of the image; overridden by the unit's `env`. */
  env: Record<string, string>;
  working_directory: string;
  /** The user that the program sees; on the host it runs as the user of the tenant. */
  user: { uid: number; gid: number; home: string; groups?: number[] };
  /** First id of the range of user ids of its files; absent: all files belong to the user of the tenant. */
  first_user_id?: number;
  /** Runs beside the command, see `health`. */
  health_check?: ImageHealthCheck;
}

/** Result of the last HEALTHCHECK of a unit. */
export interface HealthReport {
  /** Exit code. 0: healthy; 137: timed out. */
  code: number;
  /** Consecutive failures; failures in the start period do not count. */
  misses: number;
  /** The end of the output of a failed check, on one line. */
  output: string;
  /** Time since the check. */
  age_ms: number;
}

/** Twice as many as mke2fs(8) gives a file system of this size. */
export const FILES_PER_MB = 128;

export interface UnitLimits {
  memory_mb: number;
  /** Cores, e.g. 0.5. null: no limit, for builds, which run at low priority. */
  cpus: number | null;
  processes: number;
  /** A task is killed after this time; null for services. */
  time_ms: number | null;
  /** A task with more output is killed; of a service the oldest lines are discarded. */
  output_bytes: number;
  /**
   * A unit whose files grow beyond this is killed, and one with more than FILES_PER_MB files for each megabyte; null =
   * not watched. Measured every few seconds, of a service every half minute, and at once where the file system has lost
   * as much.
   */
  disk_mb: number | null;
}

/** Enough to find the process again after a restart of the control plane. Plain JSON: it is stored in the row. */
export interface Handle {
  unit_id: string;
  pid: number;
  /** Field 22 of /proc/pid/stat, or its equivalent on other systems. */
  start_time: string;
}

/** Why a unit was killed by the runtime. */
export type Killed = 'memory' | 'time' | 'output' | 'disk';

export type UnitState =
  | { state: 'running' }
  /** `code` null: ended by `signal`. `killed`: the exceeded limit for which the runtime killed the unit. */
  | { state: 'exited'; code: number | null; signal: string | null; killed: Killed | null; at: string }
  /** No trace of it: never started, or destroyed. */
  | { state: 'gone' };

export interface UnitUsage {
  /** CPU time of all processes of the unit since its start. */
  cpu_seconds: number;
  memory_bytes: number;
  /** Network traffic since the start of the unit; null where the host does not count per unit. */
  network: { received_bytes: number; sent_bytes: number } | null;
}

/** `signal`: what makes the program stop, e.g. SIGINT for a PostgreSQL that should not wait for its clients. */
export interface StopOptions {
  grace_ms: number;
  signal?: NodeJS.Signals;
}

export interface LogChunk {
  /** Whole lines without their line ends, `\r` and invalid UTF-8 cleaned; a longer line than 16 KiB comes in parts. */
  lines: { stream: 'stdout' | 'stderr'; text: string }[];
  /** Give it back as `position` next time. Opaque. */
  position: string;
  /** There is more to read at once. */
  more: boolean;
}

/** A TCP port on which a unit listens. `address`: of IPv4 or IPv6; `0.0.0.0` and `::` are all of them. */
export interface Listener {
  port: number;
  address: string;
}

/** At the same port of the host. */
export type PortToForward = Omit<ForwardedPort, 'network'>;

export interface FilesCopy {
  /** Names what an interrupted call has left. */
  id: string;
  from: string;
  to: string;
  /** Whose files they are. */
  tenant: number;
  /** Whose users own them, and whose will; null: all belong to one user, who is set when a unit starts. */
  owners: { from: UserRange; to: UserRange } | null;
}

export interface RuntimeDriver {
  readonly name: string;
  /**
   * facts: images (whether units can run in the root of an image), sandbox (bubblewrap | none),
   * limits (cgroup2 | cgroup1 | poll), users (one_each | shared | own), and what
   * bounds the processes of a unit: process_limit (unit | user | monitor), see drivers/runtime/host_probe.ts.
   */
  fingerprint(ctx: DriverContext): Promise<Fingerprint>;

  /**
   * Starts the unit, or finds it where it was started before (also by a control plane that died in the middle). @throws
   * DriverError
   */
  start(spec: UnitSpec, ctx: DriverContext): Promise<Handle>;
  /**
   * Never modifies anything. A unit that was started without its handle having been stored is found by its id: see
   * `find`.
   */
  inspect(handle: Handle): Promise<UnitState>;
  /** The handle of a unit that was started under this id, null where there is none. */
  find(unitId: string): Promise<Handle | null>;
  /**
   * `signal` (SIGTERM) to the innermost processes, SIGKILL to all that is left after the grace time. Stopped is
   * success.
   */
  stop(handle: Handle, options: StopOptions, ctx: DriverContext): Promise<void>;
  /** Kills remaining processes and removes run directory, copies and control groups of the id. Absent is success. */
  destroy(unitId: string, ctx: DriverContext): Promise<void>;

  /** Usage by unit id, for the handles whose unit is running. */
  usage(handles: readonly Handle[]): Promise<Map<string, UnitUsage>>;
  /**
   * TCP ports of the unit's listeners, as reached from outside: a response on any other port comes from a foreign
   * program. null where the host does not show them.
   */
  listening(handle: Handle): Promise<number[] | null>;
  /** Like `listening`, with the addresses of the listeners. */
  listeners(handle: Handle): Promise<Listener[] | null>;
  /** Last result of the image's health check; null if the image has none, or no check has finished yet. */
  health(handle: Handle): Promise<HealthReport | null>;
  /**
   * Lines after `position`, null = from the beginning. At most 256 KiB at a time. A unit that is gone has none. A
   * position names its run: of an earlier unit of the same id it means the beginning.
   */
  readLog(unitId: string, position: string | null): Promise<LogChunk>;
  /** Discards the part of the log before `position`, so that the file of a chatty unit does not fill the disk. */
  trimLog(unitId: string, position: string): Promise<void>;

  /**
   * A port of the configured range on which nothing listens in the network of that name. @throws DriverError capacity
   * where none is left
   */
  freePort(taken: ReadonlySet<number>, network?: string): Promise<number>;
  /** Whether units can have isolated networks within their project's network. */
  readonly exposesPorts: boolean;
  /** Where the ports of a unit are reached, by its id; for an unknown unit: on the host. */
  locationOf(unitId: string): NetworkLocation;
  /**
   * Makes the kernel forward connections of `sources` to the port of a unit in an isolated network, if it can; null
   * stops forwarding. Repeatable. @throws DriverError
   */
  forwardPort(unitId: string, port: PortToForward | null, ctx: DriverContext): Promise<void>;
  /** Whether `forwardPort` would change nothing. */
  isForwarded(unitId: string, port: PortToForward | null): Promise<boolean>;
  /**
   * Whether a server could bind the port: on the host, and, with isolated networks, in the network of that name and at
   * 127.0.0.1 of the host.
   */
  isPortFree(port: number, network?: string): Promise<boolean>;
  /**
   * The range of user ids of a directory, the same as long as the directory is there; null: the host has none.
   * @throws DriverError transient
   */
  userRange(directory: string, tenant: number): Promise<UserRange | null>;
  /**
   * Copies the files of a unit for another one; no link in them is followed. What is at `to` must not be there. @throws
   * DriverError
   */
  copyFiles(copy: FilesCopy, ctx: DriverContext): Promise<void>;
  /** Ids of all units on this host, for the sweep of orphans and for the shipper of logs. */
  list(): Promise<string[]>;
  /** Calls back within about a second after any unit has exited. @returns a function that stops watching */
  watch(ended: (unitId: string) => void): () => void;
  /** Ends all watching. Units keep running. */
  close(): Promise<void>;
}
