// How many connections to PostgreSQL an installation with several processes opens, and how it keeps to what the server
// has.
import type { Config } from '../../core/config';
import type { Sql } from '../../core/context';
import { StartupError } from '../../core/startup_error';
import { named } from '../../db/statement';

/** Besides the pool, each process that serves the API listens. */
const BESIDE_POOL_OF_WEB = 1;
/** The first process: its own listener, two loops, the routes, the claim to the applications. */
const BESIDE_POOL_OF_HOST = 5;
/** For the operator's command, a dump, and the check of a start. */
const SPARE = 10;
const POOL_MIN = 2;
/** PostgreSQL's defaults of max_connections and superuser_reserved_connections. */
const MAX_CONNECTIONS = 100;
const RESERVED = 3;

type Pools = Pick<Config, 'webConcurrency' | 'databasePoolSize'>;

/** Arguments of an embedded server that has to have more connections than by default. */
export function connectionFlags(config: Pools): string[] {
  const wanted =
    config.webConcurrency > 1
      ? forHost(config) + config.webConcurrency * (config.databasePoolSize + BESIDE_POOL_OF_WEB) + RESERVED
      : 0;
  return wanted > MAX_CONNECTIONS ? ['-c', `max_connections=${wanted}`] : [];
}

/**
 * Connections that each process that serves the API may keep: DATABASE_POOL_SIZE, or fewer, so that all fit.
 * @throws StartupError where not even two for each do
 */
export async function poolSizeThatFits(sql: Sql, config: Pools): Promise<number> {
  const [row] = await sql.query<{ room: number }>(ROOM, []);
  const room = row?.room ?? 0;
  const each = Math.floor((room - forHost(config)) / config.webConcurrency) - BESIDE_POOL_OF_WEB;
  if (each >= POOL_MIN) return Math.min(each, config.databasePoolSize);
  const least = forHost(config) + config.webConcurrency * (POOL_MIN + BESIDE_POOL_OF_WEB);
  throw new StartupError(
    `WEB_CONCURRENCY=${config.webConcurrency} needs ${least} connections at least, PostgreSQL has ${room}: lower ` +
      'it or DATABASE_POOL_SIZE, or raise max_connections',
  );
}

function forHost({ databasePoolSize }: Pools): number {
  return databasePoolSize + BESIDE_POOL_OF_HOST + SPARE;
}

// reserved_connections is known since PostgreSQL 16.
const ROOM = named(
  `select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int -
    coalesce(current_setting('reserved_connections', true), '0')::int as room`,
);
