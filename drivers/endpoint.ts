// Listeners for database endpoints on their own port: a pooler in front of one server, or a load balancer for several.
// Engines: drivers/endpoint/pgbouncer.ts, haproxy.ts. Each endpoint is a unit of the runtime; its state derives from
// its spec, so it can be removed and recreated at any time.
import type { EngineId, PooledServer } from './database';
import type { HostedServerDriver, HostedServerSpec, ObservedHostedServer } from './hosted_server';

/** Common spec. `tenant`: tenant of the database. There is no listener while the database is stopped. */
export type ListenerSpec = HostedServerSpec;

/** Connection pool: many client sessions over few connections to one server. */
export interface PoolSpec extends ListenerSpec {
  /** transaction: clients share connections per transaction; session: each client has its own until it disconnects. */
  mode: 'session' | 'transaction';
  /** Maximum connections to the server, for all users together. */
  size: number;
  database_name: string;
  /** null: not known, for an endpoint that is not running. */
  server: PooledServer | null;
  /** PEM: the certificate of the server, which clients trust. */
  tls: { certificate: string; key: string };
}

/** Load balancing by least connections. TLS and logins are passed through to the replicas. */
export interface SpreadSpec extends ListenerSpec {
  engine: EngineId;
  /** Maximum concurrent connections. */
  connections: number;
  /** Replicas that accept connections now. */
  servers: { id: string; port: number }[];
}

export type ObservedListener = ObservedHostedServer;

/** Log lines are those relevant to users, prefixed with their level. */
export type EndpointDriver<S extends ListenerSpec> = HostedServerDriver<S, ObservedListener>;

export type PoolDriver = EndpointDriver<PoolSpec>;
export type SpreadDriver = EndpointDriver<SpreadSpec>;

/** Both always exist, to remove endpoints of an earlier start; without its program, a driver creates none. */
export interface EndpointDrivers {
  pool: PoolDriver;
  spread: SpreadDriver;
}
