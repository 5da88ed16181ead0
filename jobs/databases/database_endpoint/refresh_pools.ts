// What listens before a server follows it: in the step in which the server has become something else.
import { poolsOf } from '../../../models/databases/database_endpoint/work';
import { type JobContext, requireHost } from '../../job';
import { withEndpointLock } from './endpoint_lock';
import { desiredPool, type EndpointRow } from './desired';

/** Poolers learn the users that the server of the database has by now. What fails here is done by their own job. */
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
