// What listens for an endpoint of a database at a port of its own: a pooler in front of one server, or what spreads
// connections over several. One engine a file: drivers/endpoint/pgbouncer.ts, haproxy.ts. Each endpoint is a unit of
// the runtime; all that it has is made of its spec, so it may be taken away and made anew at any time.
import type { EngineId, PooledServer } from './database';
import type { HostedServerDriver, HostedServerSpec, ObservedHostedServer } from './hosted_server';

/** What both kinds have. `tenant` is that of the database; nothing listens as long as the database is stopped. */
export type ListenerSpec = HostedServerSpec;

/** Sessions of many clients over few connections to one server. */
export interface PoolSpec extends ListenerSpec {
  /** Transactions of different clients share a connection, or a client has one for as long as it stays. */
  mode: 'session' | 'transaction';
  /** Connections to the server at most, of all users together. */
  size: number;
  database_name: string;
  /** null: where it is not to run, nobody has to know. */
  server: PooledServer | null;
  /** PEM: that of the server, because clients know it. */
  tls: { certificate: string; key: string };
}

/** Connections to the replica that has the fewest. TLS and logins are those of the replicas. */
export interface SpreadSpec extends ListenerSpec {
  engine: EngineId;
  /** Connections at the same time at most. */
  connections: number;
  /** Replicas that take connections now. */
  servers: { id: string; port: number }[];
}

export type ObservedListener = ObservedHostedServer;

/** A line of the log is what users should know of what the program says, and begins with its level. */
export type EndpointDriver<S extends ListenerSpec> = HostedServerDriver<S, ObservedListener>;

export type PoolDriver = EndpointDriver<PoolSpec>;
export type SpreadDriver = EndpointDriver<SpreadSpec>;

/** Both are always there, to take away what an earlier start has made; without its program one makes nothing. */
export interface EndpointDrivers {
  pool: PoolDriver;
  spread: SpreadDriver;
}
