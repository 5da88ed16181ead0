// Workloads: process types of releases that a cluster keeps running with a number of instances, heals and moves by
// itself, also while the control plane is away. A host runs instances one by one instead (drivers/runtime.ts).
import type { DriverContext, Fingerprint } from '../core/driver';
import type { RuntimeDriver, UnitUsage } from './runtime';
import type { TaskRuntime } from './workload/task';

export interface WorkloadRef {
  /** `wkl_…`. */
  id: string;
  project_id: string;
}

export interface Workload extends WorkloadRef {
  application_id: string;
  preview_id: string | null;
  /** For the names of objects, which people read. */
  application_name: string;
  process_type: string;
  release_id: string;
  /** Desired number of instances. */
  instances: number;
  image: WorkloadImage;
  /** Replaces entry point and command of the image; null: the image's own. */
  command: string[] | null;
  /** It is process 1 of its pod: the init of releases, and entry points that need it. No signal ends it by itself. */
  is_first_process: boolean;
  /** User and group ids of the program. */
  user: { uid: number; gid: number };
  /** Values may be secret: they are in no specification that a reader of workloads sees. */
  env: Record<string, string>;
  /** PriorityClass of its pods; null: the default of the cluster. */
  priority_class: string | null;
  /** They are on one machine, and so are all instances of the application. */
  volumes: WorkloadVolume[];
  /** Files that instances read, beside those of the image. */
  documents: WorkloadDocument[];
  /** Private addresses that its instances may connect to, beside what the operator allows to all. */
  reaches: { address: string; port: number }[];
  /** The port on which the program accepts requests; null for process types without requests. */
  port: number | null;
  health: WorkloadHealth | null;
  limits: { memory_mb: number; cpus: number; disk_mb: number | null };
  /** Time from the signal to the end of the program, at most. */
  shutdown_grace_seconds: number;
}

export interface WorkloadVolume {
  /** `vol_…`. */
  id: string;
  mount_path: string;
}

interface WorkloadDocument {
  /** All of them are in one directory, which holds nothing else. */
  path: string;
  text: string;
}

export interface WorkloadImage {
  /** With the host under which nodes reach the registry: `registry.example.com/apps/app_…@sha256:…`. */
  reference: string;
  /** For this repository alone. `ends_at`: RFC 3339. */
  login: { host: string; username: string; password: string; ends_at: string };
}

export interface WorkloadHealth {
  check: { type: 'http'; path: string; host: string } | { type: 'tcp' } | { type: 'command'; command: string[] };
  interval_seconds: number;
  timeout_seconds: number;
  /** Consecutive failures until the instance is restarted. */
  failure_threshold: number;
  /** Time after the start in which failures do not count. */
  start_seconds: number;
}

/** The observed state of a workload. */
export interface WorkloadState {
  ready: number;
  /** Why instances cannot be created, as a sentence for users; null: nothing prevents it. */
  obstacle: string | null;
  /** Fields that somebody else had changed, and that were set again: `spec.replicas`, or `environment`. */
  corrected: string[];
}

export interface WorkloadInstance {
  /** Unique among all pods, also deleted ones. */
  uid: string;
  workload_id: string;
  project_id: string;
  status: 'starting' | 'running' | 'crashed' | 'stopping';
  /** Sentences for users; null where all is well. */
  reason: string | null;
  /** Set where it is not worth waiting for it. */
  fault: 'health' | 'start' | null;
  restarts: number;
  /** RFC 3339. */
  created_at: string;
  started_at: string | null;
  /** When its program ended last, RFC 3339. */
  ended_at: string | null;
  location: { address: string } | null;
  /** Where its program accepts requests; null for process types without requests. */
  port: number | null;
}

export interface ProjectPlace {
  project_id: string;
  /** In the cluster. */
  name: string;
  /** RFC 3339; null: it is not being removed. */
  leaving_since: string | null;
  /** Why its removal does not end. */
  reason: string | null;
}

export interface InstanceListener {
  /** All instances that there are: after the start, and after each gap. */
  listed(instances: WorkloadInstance[]): void;
  changed(instance: WorkloadInstance): void;
  removed(uid: string): void;
  /** Something has changed of the task of this id: it began, ended or was removed. */
  taskChanged(id: string): void;
}

export interface FollowedInstances {
  /** By the monotonic clock: what the cluster had then was reported. A cluster that says nothing proves nothing. */
  readonly provenAt: number;
  stop(): void;
}

/** Output of instances, as of units of a host (drivers/runtime.ts); an id is `pod.` and the uid of the instance. */
export interface WorkloadLogs extends Pick<RuntimeDriver, 'list' | 'readLog' | 'trimLog'> {
  /** Resolves when all lines of an instance that has gone can be read, or after some seconds. */
  untilEnded(uid: string): Promise<void>;
}

export interface WorkloadDriver {
  readonly name: string;
  /** Never throws. facts: version, and what the cluster lacks. */
  fingerprint(ctx: DriverContext): Promise<Fingerprint>;
  /**
   * Creates the workload or changes it to the desired state; instances come and go afterwards. Repeatable.
   * @throws DriverError `conflict` where objects of these names are of somebody else; `invalid` where the cluster
   * refuses the specification
   */
  ensure(workload: Workload, ctx: DriverContext): Promise<WorkloadState>;
  /** Ends its instances within their grace time, and removes its objects. @returns whether nothing is left */
  remove(ref: Pick<WorkloadRef, 'id'>, ctx: DriverContext): Promise<boolean>;
  /** All workloads that have objects of this installation, for the sweep. */
  list(ctx: DriverContext): AsyncIterable<WorkloadRef>;
  /** Places that projects of this installation have in the cluster. @throws DriverError */
  listProjects(ctx: DriverContext): Promise<ProjectPlace[]>;
  /**
   * Begins to remove the place of a project that has been deleted, once nothing in it runs, keeps data or is of
   * somebody else. @returns what keeps it, as a sentence; null: nothing. @throws DriverError
   */
  removeProject(projectId: string, ctx: DriverContext): Promise<string | null>;
  /** All instances of this installation, once. @throws DriverError */
  listInstances(ctx: DriverContext): Promise<WorkloadInstance[]>;
  /** Follows all instances of this installation. */
  follow(listener: InstanceListener): FollowedInstances;
  /** Whether the cluster measures CPU and memory of instances. @throws DriverError */
  measures(ctx: DriverContext): Promise<boolean>;
  /** What instances use, by uid; empty where the cluster does not measure it. @throws DriverError */
  usage(ctx: DriverContext): Promise<Map<string, UnitUsage>>;
  readonly logs: WorkloadLogs;
  /** Commands that run once. */
  readonly tasks: TaskRuntime;
  /** Ends all watching. Workloads run on. */
  close(): Promise<void>;
}
