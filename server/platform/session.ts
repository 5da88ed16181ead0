// One session of PostgreSQL, outside of the pool: for locks that it holds, and for another server than the control
// database's.
import pg from 'pg';

export interface OwnSession {
  query<Row>(text: string): Promise<Row[]>;
  close(): Promise<void>;
}

/** @throws Error of the connection */
export async function openSession(url: string): Promise<OwnSession> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return {
    query: async <Row>(text: string) => (await client.query(text)).rows as Row[],
    close: () => client.end().catch(() => {}),
  };
}
