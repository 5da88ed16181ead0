// The networks that units run in: the network of the host, or an isolated one per project with a private 127.0.0.1.
// From outside of a network, its ports are reached by its location.
import type { DriverContext, Fingerprint } from '../core/driver';
import type { NetworkLocation } from '../core/outbound/network_location';

export interface EnteredNetwork {
  location: NetworkLocation;
  /** Runs the command that follows in the network. */
  command: string[];
  /** Options for bubblewrap inside the network. */
  sandboxOptions: string[];
}

export interface NetworkMember {
  /** Name of the project's network, which must exist. */
  within: string;
  /** The program listens at `port`; from outside it is reached at `reached_at`. */
  port: number;
  reached_at: number;
}

/** Destination network of each published port of the host. */
export type PortLocations = ReadonlyMap<number, NetworkLocation>;

/** A port of a network, forwarded from the same port of the host. */
export interface ForwardedPort {
  network: string;
  port: number;
  /** Allowed IPv4 CIDRs. Clients that are no longer allowed are cut off at their next packet. */
  sources: readonly string[];
  /** IPv4 addresses of the host; null: all except loopback addresses. */
  addresses: readonly string[] | null;
}

/** Ports of the host that the kernel forwards into networks, without a proxy program. */
export interface PortForwards {
  /** The forwarded port of a unit; null if it has none. */
  find(unitId: string): Promise<ForwardedPort | null>;
  /** Sets the forwarded port of a unit. Repeatable. null removes it. @throws DriverError */
  set(unitId: string, port: ForwardedPort | null, ctx: DriverContext): Promise<void>;
  /** Replaces all ports published at 127.0.0.1 for programs of the host. @throws DriverError */
  publish(ports: PortLocations, ctx: DriverContext): Promise<void>;
}

export interface NetworkDriver {
  readonly name: 'root' | 'user';
  /** Identifies the installation in the names of its resources on the host. */
  readonly tag: string;
  /** Parent directory of the networks' notes. */
  readonly directory: string;
  /** facts: network (root | user), way_out. */
  fingerprint(): Fingerprint;
  /** Creates the network of this name if it is missing or broken. Repeatable after a crash. @throws DriverError */
  ensure(name: string, ctx: DriverContext): Promise<EnteredNetwork>;
  /**
   * Creates a network for one unit, which reaches the databases of its project's network at 127.0.0.1. Absent: not
   * supported by this driver.
   */
  ensureMember?(name: string, member: NetworkMember, ctx: DriverContext): Promise<EnteredNetwork>;
  /** Absent: ports of the host are forwarded by proxy programs. */
  readonly forwards?: PortForwards;
  /** The location of the network; null if it does not exist. */
  find(name: string): NetworkLocation | null;
  /** Absent is success. @throws DriverError */
  remove(name: string, ctx: DriverContext): Promise<void>;
  /** Names of all networks of this installation, complete or not. */
  list(): Promise<string[]>;
  /** Stops the driver. If no network is left, removes all resources of the installation from the host. */
  close(): Promise<void>;
}
