// One session of PostgreSQL, outside of the pool: for locks that it holds, and for another server than the control
// database's.
import { connectToLeader } from '../../db/servers';

export interface OwnSession {
  /** Resolves when the connection has ended, whoever ended it. */
  readonly ended: Promise<void>;
  query<Row>(text: string): Promise<Row[]>;
  close(): Promise<void>;
  /** Ends a connection whose other end may be gone. */
  destroy(): void;
}

/** @param name as PostgreSQL shows the session. @throws Error of the connection */
export async function openSession(url: string, name?: string): Promise<OwnSession> {
  const client = await connectToLeader(url, { keepAlive: true, ...(name && { application_name: name }) });
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  return {
    ended,
    query: async <Row>(text: string) => (await client.query(text)).rows as Row[],
    close: () => client.end().catch(() => {}),
    destroy: () => void client.connection.stream.destroy(),
  };
}
