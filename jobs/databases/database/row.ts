// Row types and functions shared by the jobs of databases.
import { databasePackageDefinitions } from '../../../core/catalog/catalog_definitions/databases';
import type { ExtensionFound } from '../../../core/catalog/host_facts';
import type { MaskRule } from '../../../core/mask_rules';
import type { EngineDriver, EngineId, ServerSpec } from '../../../drivers/database';
import type { RecoveryWindow } from '../../../drivers/hosted_server';
import { DriverError } from '../../../core/driver';
import { type JobContext, type LoopRow, requireHost } from '../../job';
import type { DatabaseStatus } from '../../../schema/types';

export interface DatabaseRow extends LoopRow {
  version: number;
  project_id: string;
  engine: EngineId;
  /** Its server is a pod of the cluster. */
  on_cluster: boolean;
  engine_version: string;
  wanted_version: string | null;
  database_package: string;
  nodes: number;
  storage_gb: number;
  database_name: string | null;
  backup_schedule: { enabled: boolean; hour_utc: number; retention_days: number };
  maintenance_window: { weekday: string; hour_utc: number };
  restore_from: { database_id: string; backup_id: string | null; point_in_time: string | null } | null;
  mask: MaskRule[] | null;
  restoring_from: { backup_id: string | null; point_in_time: string | null } | null;
  point_in_time_window: RecoveryWindow | null;
  running: boolean;
  status: DatabaseStatus;
  status_reason: string | null;
  server_id: string;
  port: number;
  tenant: number;
  admin_password: string;
  tls_certificate: string | null;
  tls_key: string | null;
  deadline_at: string | null;
  observed: ServerProgress | null;
}

/** Progress of the server, recorded by its job. */
export interface ServerProgress extends ExitHistory {
  /** Version of the row for which it was stopped, to be restarted. */
  stopped_for?: number;
  /** Names what its data have become by a restore or an upgrade; absent = what they were from the beginning. */
  data?: string;
  /** The initial data are in place: restored from the origin, or kept from the time as a replica. */
  begun?: boolean;
  /** Generation of the row that was last fully applied to the server. */
  generation?: number;
  /** Its directory is missing: no backup is made or expires (models/databases/database_backup/job_queries.ts). */
  data_missing?: boolean;
  /** It runs without something that it should have: the reason goes once it has it. */
  degraded?: boolean;
  /** A change that failed is still tried: the reason goes once it is applied. */
  unfinished?: boolean;
  storage_used_bytes?: number | null;
  full?: boolean;
  sample?: MetricsSample;
  /** Those that a server in the cluster can have (models/databases/database_extension.ts). */
  extensions?: ExtensionFound[];
}

/** Counters at the last measurement. */
export interface MetricsSample {
  /** RFC 3339. */
  at: string;
  cpu_seconds: number | null;
  transactions: number | null;
  read_operations: number | null;
  write_operations: number | null;
}

/** Unexpected exits of the server. */
export interface ExitHistory {
  /** RFC 3339. */
  exits?: string[];
  /** The last exit is recorded, and the server has not been restarted yet. */
  down?: boolean;
}

/** @throws DriverError unsupported where the host has lost the engine */
export function requireEngineDriver(
  ctx: JobContext,
  { engine, on_cluster }: Pick<DatabaseRow, 'engine' | 'on_cluster'>,
): EngineDriver {
  const { databases, clusterDatabases } = requireHost(ctx);
  const driver = (on_cluster ? clusterDatabases : databases).get(engine);
  if (!driver && on_cluster)
    throw new DriverError('unsupported', 'This database runs in a cluster, and WORKLOADS names none any more.');
  if (!driver) throw new DriverError('unsupported', `This host no longer has the server programs of ${engine}.`);
  return driver;
}

/** @throws DriverError invalid for a package that the catalog has lost */
export function serverSizeOf(id: string): ServerSpec['size'] {
  const found = databasePackageDefinitions.find((one) => one.id === id);
  if (!found) throw new DriverError('invalid', `The package ${id} is no longer offered.`);
  return { memory_mb: found.memory_mb, cpus: found.vcpu, max_connections: found.max_connections };
}

/** Whether the time for a change that is tried is over. */
export function isPastDeadline({ deadline_at }: { deadline_at: string | null }): boolean {
  return deadline_at !== null && Date.parse(deadline_at) <= Date.now();
}
