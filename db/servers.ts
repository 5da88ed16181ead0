// The servers of a DATABASE_URL: of several, one takes writes. A failover of the control database needs no restart.
import pg from 'pg';
import { limits } from '../core/limits';
import { isFailedOver, serversOf } from '../core/postgres_url';

/** What connections of the control database are taken from. */
export interface ConnectionSource {
  /** @throws as pg, where there is none in time */
  connect(): Promise<pg.PoolClient>;
}

/** By URL, the place of the server that took writes last: all of the process begin with it. */
const leaders = new Map<string, number>();

/**
 * Connects to the server that takes writes.
 * @throws as pg, or Error with code 57P03 where no server takes writes
 */
export function connectToLeader(url: string, options: pg.ClientConfig): Promise<pg.Client> {
  return onLeader(url, (address) => open(url, address, options));
}

/** The address of the server that took writes last, or of the first. */
export function lastLeaderOf(url: string): string {
  return serversOf(url)?.[leaders.get(url) ?? 0] ?? url;
}

async function open(url: string, address: string, options: pg.ClientConfig): Promise<pg.Client> {
  const timeout = { connectionTimeoutMillis: limits.connectionTimeoutMs };
  const client = new pg.Client({ ...timeout, ...options, connectionString: address });
  client.on('error', () => undefined);
  try {
    await client.connect();
    if (isFailedOver(url)) await requireLeader(client);
    return client;
  } catch (error) {
    // An orderly end would wait for a server that is silent.
    client.connection.stream.destroy();
    throw error;
  }
}

/** A pool per server, of which one is used. */
export function openPools(url: string, options: pg.PoolConfig): ConnectionSource & { end(): Promise<void> } {
  const asked = isFailedOver(url) && { onConnect: requireLeader };
  const pools = (serversOf(url) ?? [url]).map((address) =>
    openPool({ ...options, ...asked, connectionString: address }),
  );
  const [only, ...others] = pools;
  // Each statement takes a connection: one server is not searched for.
  if (only && !others.length) return only;
  return {
    connect: () => onFirstOf(url, pools, (pool) => pool.connect()),
    end: async () => void (await Promise.all(pools.map((pool) => pool.end()))),
  };
}

function openPool(options: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(options);
  // A connection that is lost fails the queries on it, which say it better.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pool;
}

function onLeader<T>(url: string, connect: (address: string) => Promise<T>): Promise<T> {
  return onFirstOf(url, serversOf(url) ?? [url], connect);
}

/** @param servers in the order of the URL. The last one that took writes is tried first */
async function onFirstOf<Server, T>(
  url: string,
  servers: readonly Server[],
  connect: (server: Server) => Promise<T>,
): Promise<T> {
  const first = leaders.get(url) ?? 0;
  let failure: unknown;
  for (let tried = 0; tried < servers.length; tried += 1) {
    const place = (first + tried) % servers.length;
    try {
      const found = await connect(servers[place]!);
      leaders.set(url, place);
      return found;
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

async function requireLeader(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ follows: boolean }>('select pg_is_in_recovery() as follows');
  if (rows[0]?.follows)
    throw Object.assign(new Error('the server of the database takes no writes: it follows another one'), {
      code: '57P03',
    });
}
