// Declarations of a kind on its job, besides the steps: the registry collects them, so that no other part of the
// platform has to know the kind.
import type { ClaimOptions } from '../drivers/workload/kubernetes/claims';
import type { Config } from '../core/config';
import type { Sql } from '../core/context';
import type { EngineFacts, HostFacts } from '../core/catalog/host_facts';
import type { DriverContext } from '../core/driver';
import type { LogChunk, RuntimeDriver } from '../drivers/runtime';
import type { Drivers, HostDrivers } from './job';

/** Parts of a host that the drivers of a kind can use. */
export interface HostParts {
  config: Config;
  runtime: RuntimeDriver;
  facts(): Promise<HostFacts>;
  engines(): Promise<EngineFacts>;
  /** Of the cluster that runs applications; null where this host does. */
  cluster: ClaimOptions | null;
}

/** Things of a kind on the host, beside its units, that may outlive the row: after a crash, or a restored database. */
export interface Leftovers {
  /** Name of the kind in logs and reports. */
  kind: string;
  /** Ids of all existing objects, in batches. Listed before rows are read, so objects created meanwhile have rows. */
  list(drivers: Drivers, ctx: DriverContext): AsyncIterable<Leftover[]>;
  /** The subset of ids without a row; an object in tear-down still has its row. */
  withoutRow(sql: Sql, ids: readonly string[]): Promise<string[]>;
  /** Absent: leftovers are reported to the operator and never removed. */
  remove?(id: string, drivers: HostDrivers, ctx: DriverContext): Promise<void>;
}

export interface Leftover {
  id: string;
  /** Where it is, for the report. */
  ref?: Record<string, unknown>;
}

/** A log that a host copies: where it is read, and where its lines go. */
export interface LogSource {
  /** Key of the position: the id of the log's unit, or `<id>.log` for a log that outlives its unit. */
  key: string;
  read(position: string | null): Promise<LogChunk>;
  /** Writes the lines, in one transaction with the position. */
  append(sql: Sql, lines: readonly string[]): Promise<void>;
}

/** A batch of all ids at once, for lists that are short. */
export async function* allAtOnce(ids: Promise<readonly string[]>): AsyncIterable<Leftover[]> {
  yield (await ids).map((id) => ({ id }));
}
