// A job reconciles the rows of one kind: it moves the observed state to the desired one. Every file of this folder that
// exports `job` is one. A job may be called at any time and any number of times, also after a crash within it.
import type { Config } from '../core/config';
import type { Probes, Sql } from '../core/context';
import type { Logger } from '../core/log/log';
import type { SecretBox } from '../core/secrets';
import type { StateMachine } from '../core/states';
import type { HostFacts } from '../core/catalog/host_facts';
import type { BuildDriver } from '../drivers/builder';
import type { CdnDriver } from '../engines/cdn';
import type { CertificateDriver } from '../drivers/certificates';
import type { OperatorCertificate } from '../drivers/certificates/operator';
import type { EngineDriver, EngineId } from '../drivers/database';
import type { DriverContext } from '../core/driver';
import type { EndpointDrivers } from '../drivers/endpoint';
import type { GitProviders } from '../drivers/git_provider';
import type { ImageDriver } from '../drivers/image';
import type { IngressDriver } from '../engines/ingress/ingress';
import type { NameserverDriver } from '../engines/dns';
import type { Outbound } from '../core/outbound';
import type { ReleaseImageDriver } from '../drivers/release_image';
import type { RegistryDriver } from '../engines/registry';
import type { RuntimeDriver } from '../drivers/runtime';
import type { SourceDriver } from '../drivers/source';
import type { UploadFiles } from '../drivers/source/upload_files';
import type { TaskRuntime } from '../drivers/workload/task';
import type { VolumeDrivers } from '../drivers/volume';
import type { WorkloadDriver } from '../drivers/workload';
import type { Values } from '../db/table';
import type { ControlDatabase, Session } from '../db/control_database';
import type { LoopRow } from '../db/lease';
import type { UnitOwner } from '../models/applications/unit_owner';
import type { HostParts, Leftovers, LogSource } from './declarations';

export type { LoopRow, Values };

/** The drivers of this host, by kind. */
export interface Drivers {
  volumes: VolumeDrivers;
  /** null in a process that does not run applications, see `Job.host`. */
  host: HostDrivers | null;
  /** Absent where no ACME_DIRECTORY is set. */
  certificates?: CertificateDriver;
  /** The certificate in files of the operator, which goes before others. */
  operatorCertificate?: Pick<OperatorCertificate, 'of'>;
}

/** Drivers that build and run applications. One process at a time has them: the one with the ingress (INGRESS_PORT). */
export interface HostDrivers {
  source: SourceDriver;
  /** Archives that were uploaded as sources. */
  uploads: UploadFiles;
  builder: BuildDriver;
  runtime: RuntimeDriver;
  /** The cluster that runs applications; null where this host does. */
  workloads: WorkloadDriver | null;
  /** Commands that this cluster runs once, and what copies their output; null where this host runs them. */
  tasks: { runtime: TaskRuntime; shipper: HostDrivers['shipper'] } | null;
  ingress: IngressDriver;
  /** Engines of databases that this host has. */
  databases: ReadonlyMap<EngineId, EngineDriver>;
  /** Engines whose servers can run in the cluster; empty where this host runs applications. */
  clusterDatabases: ReadonlyMap<EngineId, EngineDriver & { close(): void }>;
  /** Clients of GitHub, GitLab, Bitbucket and Gitea, with write access. */
  gitProviders: GitProviders;
  /** Drivers of database endpoints with a separate port. */
  endpoints: EndpointDrivers;
  /** The authoritative name server of DNS zones; null where DNS_PORT is 0. */
  nameserver: NameserverDriver | null;
  /** The cache of CDN zones. */
  cdn: CdnDriver;
  /** Outgoing requests to addresses that users configure. */
  outbound: Outbound;
  /** The container registry; null where REGISTRY_PORT is 0 or its port is taken. */
  registry: RegistryDriver | null;
  /** Pulls the images that applications run. */
  images: ImageDriver;
  /** Images of releases, in the registry of the platform of this name. */
  openReleaseImages(registry: string): ReleaseImageDriver;
  /** Absolute paths. */
  directories: { releases: string; caches: string };
  /** Identifies these directories: another machine has others. */
  directoryId: string;
  shipper: {
    /** Resolves when every line that the ended unit has written is in the database. */
    shipRemaining(unitId: string): Promise<void>;
  };
  facts(): Promise<HostFacts>;
}

/** Parts that the process gives to its loop. */
export interface LoopParts {
  database: ControlDatabase;
  config: Config;
  secrets: SecretBox;
  drivers: Drivers;
  probes: Probes;
  log: Logger;
  /** Calls the handler of a channel with the payload of each notification, see server/platform/listener.ts. */
  listen(handlers: Record<string, (payload: string) => void>): { close(): Promise<void> };
}

/** Travels with one step. `signal` and `deadline` (ms since the epoch) bound it: it is a DriverContext too. */
export interface JobContext extends DriverContext {
  sql: Session;
  config: Config;
  secrets: SecretBox;
  drivers: Drivers;
  probes: Probes;
  log: Logger;
  /** The row has failed for good: a job looks, and answers that all is well again; it acts where that harms nobody. */
  gaveUp: boolean;
  /** Writes columns of the row before the step ends. @throws LeaseLost when another worker has the row */
  record(columns: Values): Promise<void>;
}

export interface Job<Row extends LoopRow = LoopRow> {
  table: string;
  /** SQL of a row's project, for accounts take turns. Default: its `project_id`; without one it is the platform's. */
  project?: string;
  /** Works on applications: only in the process that has `drivers.host`. */
  host?: true;
  /** Its moves are no events in the activity of the project: there are too many of them. */
  quiet?: true;
  /** The same of one row: others tell what becomes of it. */
  isQuiet?(row: Row): boolean;
  /** Other code changes the status too and records its own events: of a step, only the change it made is an event. */
  movedElsewhere?: true;
  /** State machine of the kind. Without it, or without the state `failed`, a row is retried for ever. */
  states?: StateMachine;
  /** How long transient failures are retried before the row is `failed`. Default 10 minutes. */
  deadlineMs?: number;
  /** How long one step may take. Default: the lease less its margin. */
  stepMs?: number;
  /** A failed row is looked at again after this time, with `gaveUp`. Default: never. */
  watchFailedMs?: number;
  /**
   * Units of the runtime that rows of the kind own: an end of one makes its row due, and one without a row is removed.
   */
  units?: Omit<UnitOwner, 'table'>;
  /** Further leftovers of a row on the host. */
  leftovers?: readonly Leftovers[];
  /** Logs that the host copies, as many as there are rows with one. */
  logs?(sql: Sql, drivers: HostDrivers): Promise<LogSource[]>;
  /** Opens the drivers that the kind adds to the host, when the host starts. */
  openDrivers?(host: HostParts): Partial<HostDrivers> | Promise<Partial<HostDrivers>>;
  /** Runs once before the first claim. */
  prepare?(sql: Session): Promise<void>;
  /**
   * One step on a deleted row that the bin keeps: what runs or answers is stopped, and data stay. Without it there is
   * nothing to stop.
   */
  park?(row: Row, ctx: JobContext): Promise<Outcome>;
  /**
   * One step. Errors: a DriverError is handled by its reason (docs/decisions/rules.md §3), its message is shown to
   * users as status_reason; any other error is a bug of the platform, logged and retried.
   */
  reconcile(row: Row, ctx: JobContext): Promise<Outcome>;
}

export type Outcome =
  | { kind: 'settled' | 'progressing'; columns: Values; nextMs: number | null }
  | { kind: 'failed'; columns: Values; reason: string; nextMs: number | null }
  | { kind: 'gone' };

/** The drivers of the host. @throws Error in a process that has none: the job lacks `host: true` */
export function requireHost(ctx: JobContext): HostDrivers {
  if (!ctx.drivers.host) throw new Error('this job runs only in the process that has INGRESS_PORT');
  return ctx.drivers.host;
}

/** The desired state is reached. `nextMs`: delay until the next periodic step; null: not before the row is changed. */
export function settled(columns: Values = {}, nextMs: number | null = null): Outcome {
  return { kind: 'settled', columns, nextMs };
}

/** In progress: the next step comes after `nextMs`. The deadline runs on. */
export function progressing(nextMs: number, columns: Values = {}): Outcome {
  return { kind: 'progressing', columns, nextMs };
}

/** Permanent failure, not retried before the row is changed. `reason` is a sentence for users. */
export function failed(reason: string, columns: Values = {}, nextMs: number | null = null): Outcome {
  return { kind: 'failed', reason, columns: { status: 'failed', status_reason: reason, ...columns }, nextMs };
}

/** Torn down: the row is deleted. */
export const gone: Outcome = { kind: 'gone' };

/** A time around `ms`, so that rows made together are not due together. */
export function jittered(ms: number): number {
  return Math.round(ms * (0.9 + Math.random() * 0.2));
}

/** Another worker has the row: whatever this step found is void. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}
