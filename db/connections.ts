// Connections of the pool. A statement that was prepared before a migration gave its table a column fails on that
// connection for ever ("cached plan must not change result type"): all connections of that time are replaced.
import type pg from 'pg';
import type { ConnectionSource } from './servers';

/** How often a pool has met such a statement; of a connection, how often when it was taken first. */
const metBy = new WeakMap<ConnectionSource, number>();
const takenAt = new WeakMap<pg.ClientBase, number>();

/** @throws as pg, where there is none in time */
export async function acquireConnection(pool: ConnectionSource): Promise<pg.PoolClient> {
  for (;;) {
    const client = await pool.connect();
    const met = metBy.get(pool) ?? 0;
    if (!takenAt.has(client)) takenAt.set(client, met);
    if (takenAt.get(client) === met) return client;
    client.release(true);
  }
}

/** Whether columns have changed since the statement was prepared. Another connection can run it. */
export function isStalePlan(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === '0A000' && String(message).includes('cached plan');
}

/** To be called with the failure of a statement. */
export function noteFailure(pool: ConnectionSource, error: unknown): void {
  if (isStalePlan(error)) metBy.set(pool, (metBy.get(pool) ?? 0) + 1);
}
