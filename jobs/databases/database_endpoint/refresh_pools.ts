// Listeners in front of a database server are updated in the step in which the server has changed.
import { poolsOf } from '../../../models/databases/database_endpoint/job_queries';
import { type JobContext, requireHost } from '../../job';
import { withEndpointLock } from './endpoint_lock';
import { desiredPool, type EndpointRow } from './desired';

/** Updates the users of poolers to those of the database server. Failures are retried by the endpoint's job. */
export async function refreshPools(databaseId: string, ctx: JobContext): Promise<void> {
  const pools = await poolsOf<EndpointRow>(ctx.sql, databaseId);
  await Promise.all(
    pools.map((row) =>
      withEndpointLock(row.id, () => refreshPool(row, ctx)).catch((error: unknown) =>
        ctx.log.warn({ err: error, endpoint: row.id }, 'a pooler could not be told of its server'),
      ),
    ),
  );
}

async function refreshPool(row: EndpointRow, ctx: JobContext): Promise<void> {
  const { pool } = requireHost(ctx).endpoints;
  const spec = await desiredPool(row, ctx);
  if (!spec) return;
  const desired = { id: row.id, spec };
  const seen = await pool.observe(desired, ctx);
  // One that has ended is for its own job, which says so.
  if (seen.state === 'present' && seen.observed.state !== 'failed') await pool.ensure(desired, seen, ctx);
}
