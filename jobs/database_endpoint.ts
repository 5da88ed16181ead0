// Endpoints. One at the port of a server is there with it: the job of the server says so. What has a port of its own needs
// something that listens there.
import { DriverError } from '../drivers/driver';
import { DatabaseEndpoint } from '../models/database_endpoint';
import { hasOwnPort } from '../models/database_endpoint/work';
import { freeLeases } from '../models/lease';
import { makeDatabaseDue } from '../models/managed_database/due';
import { freePort, wakeReplicas } from '../models/managed_database/work';
import { gone, settled, type Job, type JobContext, type LoopRow, type Outcome } from './job';

interface EndpointRow extends LoopRow {
  database_id: string;
  port: number;
}

export const job: Job<EndpointRow> = {
  table: DatabaseEndpoint.table,
  host: true,
  quiet: true,
  states: DatabaseEndpoint.states,
  prepare: (sql) => freeLeases(sql, DatabaseEndpoint.table),
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : bringUp(row, ctx)),
};

async function bringUp(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  if (await hasOwnPort(ctx.sql, row.id)) throw new DriverError('unsupported', 'nothing of this host can listen at a port of its own for an endpoint');
  if (row.status !== 'active') await tellServers(row, ctx);
  return settled();
}

async function tearDown(row: EndpointRow, ctx: JobContext): Promise<Outcome> {
  await tellServers(row, ctx);
  await freePort(ctx.sql, row.id);
  return gone;
}

async function tellServers({ database_id }: EndpointRow, ctx: JobContext): Promise<void> {
  await makeDatabaseDue(ctx.sql, database_id);
  await wakeReplicas(ctx.sql, database_id);
}
