import type { Socket } from 'node:net';
import type pg from 'pg';

/**
 * What is sent on the connection until the end of this turn of the event loop goes out in one packet.
 * `connection` is not in the types of pg; it is what pg itself corks for the parts of one query.
 */
export function writeTogether(client: pg.PoolClient): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}
