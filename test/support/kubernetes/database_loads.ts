// Numbered rows for databases of each kind in pods, over clients that we have not written, each over a connection of
// its own: what was acknowledged has to be there afterwards.
import { createClient } from '@redis/client';
import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { kubectl } from '../../cluster/kubectl';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { waitFor } from '../wait_for';
import type { FurtherLoad, LoadedInstallation } from './machine_loads';
import type { ServiceWays } from './service_ways';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
const WITHIN_MS = 300_000;
const CONNECT_MS = 2_000;
const ANSWER_MS = 10_000;
const PAUSE_MS = 200;

export interface DatabaseLoad extends FurtherLoad {
  id: string;
  /** Numbers of the rows that are there. */
  rows(): Promise<Set<string>>;
}

interface Login {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Of the certificate. */
  servername: string;
  ca: string;
}

type Work = (login: Login, number: number | null) => Promise<string[]>;

/** Writes a row, or reads all where the number is null; the first one makes the table. */
const WORK: Record<string, Work> = {
  async postgresql({ host, port, user, password, database, servername, ca }, number) {
    const client = new Client({
      ...{ host, port, user, password, database, ssl: { ca, servername } },
      ...{ connectionTimeoutMillis: CONNECT_MS, query_timeout: ANSWER_MS },
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      if (number === 0) await client.query('create table if not exists ledger (n text primary key)');
      const text = number === null ? 'select n from ledger' : 'insert into ledger values ($1) returning n';
      return (await client.query(text, number === null ? [] : [number])).rows.map(({ n }: { n: string }) => n);
    } finally {
      void client.end().catch(() => undefined);
    }
  },
  async mariadb({ host, port, user, password, database, ca }, number) {
    const ssl = { ca, verifyIdentity: false };
    const client = await createConnection({ host, port, user, password, database, ssl, connectTimeout: CONNECT_MS });
    client.on('error', () => undefined);
    try {
      if (number === 0) await client.query('create table if not exists ledger (n varchar(20) primary key)');
      if (number === null)
        return ((await client.query('select n from ledger'))[0] as { n: string }[]).map(({ n }) => n);
      await client.query({ sql: 'insert into ledger values (?)', values: [number], timeout: ANSWER_MS });
      return [String(number)];
    } finally {
      client.destroy();
    }
  },
  async redis({ host, port, user: username, password, servername, ca }, number) {
    const socket = { host, port, tls: true as const, ca, servername, connectTimeout: CONNECT_MS };
    const client = createClient({
      ...{ username, password, disableOfflineQueue: true },
      socket: { ...socket, socketTimeout: ANSWER_MS, reconnectStrategy: false },
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      if (number === null) return await client.sMembers('ledger');
      await client.sAdd('ledger', String(number));
      return [String(number)];
    } finally {
      client.destroy();
    }
  },
};

/** A database that is available, and whose Service is reached. @param body of its creation */
export async function openDatabaseLoad(
  { cluster, installation, ways }: { cluster: ClusterOfMachine; installation: LoadedInstallation; ways: ServiceWays },
  name: string,
  body: { engine: string; [field: string]: unknown },
): Promise<DatabaseLoad> {
  const made = await installation.call('POST', '/v2/databases', { body: { name, ...body } });
  if (made.status !== 201) throw new Error(made.text);
  const { id } = made.body;
  let last: any;
  const isAvailable = async (): Promise<boolean> => {
    last = (await installation.call('GET', `/v2/databases/${id}`)).body;
    return last.status === 'available';
  };
  await waitFor(name, isAvailable, WITHIN_MS).catch((error: Error) => {
    throw new Error(`${error.message}: ${last.status} ${last.status_reason}`);
  });
  const selector = ['--field-selector', `metadata.name=${String(id).replace('_', '-')}`];
  const path = 'jsonpath={.items[0].spec.clusterIP}';
  const address = (await kubectl(cluster.kubeconfig, 'get', 'services', '-A', ...selector, '-o', path)).trim();
  ways.open(address);
  const { body: given } = await installation.call('GET', `/v2/databases/${id}/credentials`);
  const [endpoint] = given.endpoints;
  const login = {
    ...{ host: address, port: endpoint.port, user: given.username, password: given.password },
    ...{ database: given.database_name, servername: endpoint.host },
    ca: await (await fetch(`http://${installation.endpoints.api[0]}/databases/ca.pem`)).text(),
  };
  const work = WORK[body.engine] as Work;
  await waitFor('a first row', () => work(login, 0).then(Boolean, () => false), WITHIN_MS);
  let number = 0;
  return {
    ...{ id, name, pauseMs: PAUSE_MS },
    async next() {
      const from = performance.now();
      const value = await work(login, (number += 1)).then(
        ([first = null]) => first,
        () => null,
      );
      return { ms: performance.now() - from, repeated: 0, value };
    },
    rows: async () => {
      const read = (): Promise<string[] | null> => work(login, null).catch(() => null);
      return new Set(await waitFor(`rows of ${name}`, read, WITHIN_MS));
    },
  };
}
