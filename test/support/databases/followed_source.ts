// A PostgreSQL elsewhere that imports follow, and a program that writes there all the while.
import { existsSync, readdirSync } from 'node:fs';
import pg from 'pg';
import { freePort } from '../processes/free_port';
import { startStockServer, type StockServer } from './stock_postgresql';

export interface FollowedSource {
  server: StockServer;
  /** As its superuser. */
  address: string;
  /** As another user. */
  addressOf(user: string): string;
  /* oxlint-disable-next-line typescript/no-explicit-any -- rows of all kinds */
  query(sql: string): Promise<any[]>;
  /** Names of slots and publications. */
  leftovers(): Promise<string[]>;
  stop(): void;
}

export interface Writer {
  /** Ids of rows whose insert was acknowledged. */
  acknowledged: number[];
  /** Ends it. */
  stop(): Promise<void>;
}

function binaries(): string {
  for (const series of readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a))) {
    const bin = `/usr/lib/postgresql/${series}/bin`;
    if (existsSync(`${bin}/initdb`)) return bin;
  }
  throw new Error('no PostgreSQL is installed');
}

/** @param bin directory of the programs of the server, those of this machine by default */
export async function startFollowedSource(
  settings: string[] = ['wal_level=logical'],
  bin: string = binaries(),
): Promise<FollowedSource> {
  const port = await freePort();
  const server = startStockServer(bin, { port, settings });
  const addressOf = (user: string) => `postgresql://${user}:none@127.0.0.1:${port}/shop`;
  const once = async (connectionString: string, sql: string) => {
    const client = new pg.Client({ connectionString });
    client.on('error', () => undefined);
    await client.connect();
    try {
      const found = await client.query(sql);
      return Array.isArray(found) ? found.at(-1).rows : found.rows;
    } finally {
      await client.end();
    }
  };
  await once(`postgresql://postgres@127.0.0.1:${port}/postgres`, 'create database shop');
  const address = addressOf('postgres');
  const query = (sql: string) => once(address, sql);
  return {
    ...{ server, address, addressOf, query },
    async leftovers() {
      const rows = await query(
        'select slot_name::text as name from pg_replication_slots union select pubname from pg_publication',
      );
      return rows.map(({ name }: { name: string }) => name);
    },
    stop: () => server.stop(),
  };
}

/** Inserts rows with ids that rise into the table `written`, changes and deletes others. Goes on after outages. */
export function startWriter({ address }: FollowedSource): Writer {
  const acknowledged: number[] = [];
  let isStopped = false;
  const work = async (): Promise<void> => {
    for (let id = 1; !isStopped;) {
      const client = new pg.Client({ connectionString: address });
      client.on('error', () => undefined);
      try {
        await client.connect();
        for (; !isStopped; id += 1) {
          await client.query('insert into written (id, note) values ($1, $2)', [id, `row ${id}`]);
          acknowledged.push(id);
          await new Promise((resolve) => setTimeout(resolve, 10));
          if (id % 3 === 0) await client.query('update written set note = note || $2 where id = $1', [id - 2, '!']);
          if (id % 10 === 0) await client.query('delete from extra where id = $1', [id]);
        }
      } catch {
        // The row may be there without an acknowledgement.
        id += 1;
        await new Promise((resolve) => setTimeout(resolve, 200));
      } finally {
        await client.end().catch(() => undefined);
      }
    }
  };
  const done = work();
  return {
    acknowledged,
    async stop() {
      isStopped = true;
      await done;
    },
  };
}
