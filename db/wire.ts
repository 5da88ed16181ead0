import type { Socket } from 'node:net';
import type pg from 'pg';

/**
 * Sends all messages of this turn of the event loop in one packet.
 * `connection` is not in the types of pg; it is what pg itself corks for the parts of one query.
 */
export function writeTogether(client: pg.PoolClient): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}
