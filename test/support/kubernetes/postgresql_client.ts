// A client of PostgreSQL in pods that is not ours: it verifies the certificate and its name.
import { Client } from 'pg';
import { waitFor } from '../wait_for';
import type { DatabaseCalls } from './database_calls';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the server sends */
const WITHIN_MS = 120_000;

interface Login {
  username: string;
  password: string;
}

export interface PostgresqlClient {
  connect(id: string, login?: Login): Promise<Client>;
  /** `login`: default: that of the database. @returns the first column of the first row */
  ask(id: string, statement: string, login?: Login): Promise<any>;
  /** Waits for the answer. */
  answers(id: string, statement: string, expected: unknown, login?: Login): Promise<unknown>;
}

/** @param url of the service */
export function postgresqlClient({ get, podOf }: DatabaseCalls, url: () => string): PostgresqlClient {
  const addresses = new Map<string, string>();
  const client: PostgresqlClient = {
    async connect(id, login) {
      const credentials = await get(`${id}/credentials`);
      const [endpoint] = credentials.endpoints;
      // While the API server is away, it is where it was.
      const { ip } = await podOf(id).catch(() => ({ ip: '' }));
      const host = ip || (addresses.get(id) ?? '');
      addresses.set(id, host);
      const { username: user, password } = login ?? credentials;
      const connection = new Client({
        ...{ host, port: endpoint.port, user, password, database: credentials.database_name },
        connectionTimeoutMillis: 5_000,
        ssl: { ca: await (await fetch(`${url()}/databases/ca.pem`)).text(), servername: endpoint.host },
      });
      connection.on('error', () => undefined);
      await connection.connect();
      return connection;
    },
    async ask(id, statement, login) {
      const connection = await client.connect(id, login);
      try {
        return (await connection.query({ text: statement, rowMode: 'array' })).rows[0]?.[0];
      } finally {
        await connection.end().catch(() => undefined);
      }
    },
    answers: (id, statement, expected, login) =>
      waitFor(
        `${String(expected)} from ${statement}`,
        async () => (await client.ask(id, statement, login).catch(() => undefined)) === expected,
        WITHIN_MS,
      ),
  };
  return client;
}
