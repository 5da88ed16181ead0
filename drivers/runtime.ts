// What runs programs: instances of process types (services), builds and release commands (tasks). A unit outlives the
// control plane: it is found again by its id, its process id and the start time of that process.
import type { ImageHealthCheck } from '../core/protocols/image_settings';
import type { DriverContext, Fingerprint } from '../core/driver';
import type { UserRange } from './image/owners';
import type { ForwardedPort } from './network';
import type { NetworkLocation } from '../core/outbound/network_location';

export interface UnitSpec {
  /**
   * `ins_…` of an instance, `dep_….build` and `dep_….release` of a deployment. Names the run directory: starting twice
   * meets the same unit.
   */
  id: string;
  kind: 'service' | 'task';
  /** Run by `sh -c` in `directory`, after `.platform/profile` where a build has left one. */
  command: string;
  /**
   * Host path of the files. A service gets a copy of its own, which goes with it; a task works in the directory itself.
   */
  directory: string;
  /** Below `directory`, where the command starts; '.' is the directory itself. */
  root_directory: string;
  /**
   * Further directories of the host that the unit may write: the build cache (same path inside), volumes at their mount
   * path.
   */
  mounts: { source: string; target: string }[];
  /** Directories of the host that the unit may read, seen at the same path: programs that lie outside of the system. */
  readable?: string[];
  /**
   * All variables that the unit sees, apart from PATH, HOME, LANG and TMPDIR, which the runtime gives where they are
   * absent.
   */
  env: Record<string, string>;
  /**
   * Number of the tenant: units of one application share a user of the operating system, where the host has users to
   * give.
   */
  tenant: number;
  limits: UnitLimits;
  /** It makes a sandbox within its own, as a build of an image does: it may make namespaces, and mount in them. */
  nested?: boolean;
  /**
   * Directory with files of several users, whose range of user ids the unit gets, where the host has ranges
   * (drivers/runtime/sandbox/user_ranges.ts): a build as a user namespace in a file descriptor, an image as the users
   * that its programs and its files have.
   */
  user_range?: string;
  /**
   * Name of the network that the unit shares with others of its project, where units have networks of their own;
   * absent: that of the host.
   */
  network?: string;
  /**
   * The unit gets a network of its own, from which that of the project is reached: the program listens at `port`
   * whatever other units listen at, and is reached at `reached_at`. Only where the runtime `exposesPorts`.
   */
  exposed?: { port: number; reached_at: number };
  /** In a network of its own: the port on which it listens, which is led to from 127.0.0.1 of the host too. */
  published_port?: number;
  /** The unit runs in the root of an image, which `directory` is; a task gets a copy of its own too. */
  image?: UnitImage;
}

export interface UnitImage {
  /** Executed as it is. null: `command`, by the shell of the image. */
  command: string[] | null;
  /** Variables of the image; those of the unit win. */
  env: Record<string, string>;
  working_directory: string;
  /** As whom the program finds itself; for the host it is the user of the tenant. */
  user: { uid: number; gid: number; home: string; groups?: number[] };
  /** Of the range of user ids that its files have; absent: they all belong to the user of the tenant. */
  first_user_id?: number;
  /** Runs beside the command, see `health`. */
  health_check?: ImageHealthCheck;
}

/** What the last HEALTHCHECK of a unit found. */
export interface HealthReport {
  /** 0: healthy; 137: it took too long. */
  code: number;
  /** Failures in a row that count: not those of the time after the start. */
  misses: number;
  /** Of a check that failed: the end of its output, on one line. */
  output: string;
  /** Since then. */
  age_ms: number;
}

/** Twice as many as mke2fs(8) gives a file system of this size. */
export const FILES_PER_MB = 128;

export interface UnitLimits {
  memory_mb: number;
  /** Cores, e.g. 0.5. Builds may take what is free, at low priority: null. */
  cpus: number | null;
  processes: number;
  /** A task is killed after this time; null for services. */
  time_ms: number | null;
  /** A task that prints more is killed; of a service the oldest lines go. */
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
  /** Field 22 of /proc/pid/stat, or what the system has of the kind. */
  start_time: string;
}

/** Why a unit was killed by the runtime. */
export type Killed = 'memory' | 'time' | 'output' | 'disk';

export type UnitState =
  | { state: 'running' }
  /** `code` null: ended by `signal`. `killed`: the runtime did it, for that limit. */
  | { state: 'exited'; code: number | null; signal: string | null; killed: Killed | null; at: string }
  /** No trace of it: never started, or destroyed. */
  | { state: 'gone' };

export interface UnitUsage {
  /** CPU time since its start, all its processes together. */
  cpu_seconds: number;
  memory_bytes: number;
  /** Since its start; null where the host does not count per unit. */
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
  /** Kills what is left and removes run directory, copies and control groups of the id. Absent is success. */
  destroy(unitId: string, ctx: DriverContext): Promise<void>;

  /** Those of the handles that run. */
  usage(handles: readonly Handle[]): Promise<Map<string, UnitUsage>>;
  /**
   * TCP ports on which processes of the unit listen, as others reach them: what answers on another one is somebody
   * else. null where the host doesn't tell.
   */
  listening(handle: Handle): Promise<number[] | null>;
  /** The same with the addresses at which they listen. */
  listeners(handle: Handle): Promise<Listener[] | null>;
  /** What the health check of an image found last; null where it has none, or none has ended yet. */
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
  /** Whether units can have networks of their own within that of their project. */
  readonly exposesPorts: boolean;
  /** Where the ports of a unit are reached, by its id; of one that is not there: on the host. */
  locationOf(unitId: string): NetworkLocation;
  /**
   * Has the kernel lead connections of `sources` to the port of a unit in a network of its own, where it can; null: no
   * longer. Repeatable. @throws DriverError
   */
  forwardPort(unitId: string, port: PortToForward | null, ctx: DriverContext): Promise<void>;
  /** Whether `forwardPort` would change nothing. */
  isForwarded(unitId: string, port: PortToForward | null): Promise<boolean>;
  /**
   * Whether a server could have the port: on the host, and where units have networks of their own, in that of the
   * name and at 127.0.0.1 of the host.
   */
  isPortFree(port: number, network?: string): Promise<boolean>;
  /**
   * The range of user ids of a directory, the same as long as the directory is there; null: the host has none.
   * @throws DriverError transient
   */
  userRange(directory: string, tenant: number): Promise<UserRange | null>;
  /** Ids of all units on this host, for the sweep of orphans and for the shipper of logs. */
  list(): Promise<string[]>;
  /** Calls back within about a second after a unit has ended, whoever started it. Returns how to stop watching. */
  watch(ended: (unitId: string) => void): () => void;
  /** Ends the watching. Units run on. */
  close(): Promise<void>;
}
