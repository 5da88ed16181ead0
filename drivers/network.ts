// The networks that units run in: that of the host, or one of its own for each project, in which 127.0.0.1 is the
// project's alone. Who is outside of a network reaches its ports by its location.
import type { DriverContext, Fingerprint } from '../core/driver';
import type { NetworkLocation } from '../core/outbound/network_location';

export interface EnteredNetwork {
  location: NetworkLocation;
  /** Runs the command that follows in the network. */
  command: string[];
  /** Options that a bubblewrap in it needs. */
  sandboxOptions: string[];
}

export interface NetworkMember {
  /** Name of the network of the project, which is there. */
  within: string;
  /** The program listens at `port`; who is outside reaches it at `reached_at`. */
  port: number;
  reached_at: number;
}

/** Where each port of the host leads to. */
export type PortLocations = ReadonlyMap<number, NetworkLocation>;

/** A port of a network that is reached at the same port of the host. */
export interface ForwardedPort {
  network: string;
  port: number;
  /** CIDRs of IPv4. Who is none of them any more is disconnected with the next packet. */
  sources: readonly string[];
  /** Of the host, IPv4; null: all but those of the loopback interface. */
  addresses: readonly string[] | null;
}

/** Ports of the host that the kernel leads into networks, without a program between. */
export interface PortForwards {
  /** What is forwarded for a unit. */
  find(unitId: string): Promise<ForwardedPort | null>;
  /** Repeatable. null: nothing. @throws DriverError */
  set(unitId: string, port: ForwardedPort | null, ctx: DriverContext): Promise<void>;
  /** At 127.0.0.1 for programs of the host: these ports and no others. @throws DriverError */
  publish(ports: PortLocations, ctx: DriverContext): Promise<void>;
}

export interface NetworkDriver {
  readonly name: 'root' | 'user';
  /** In the names of all that the installation has on the host. */
  readonly tag: string;
  /** Of what is known of the networks. */
  readonly directory: string;
  /** facts: network (root | user), way_out. */
  fingerprint(): Fingerprint;
  /** The network of this name, made where it is missing or broken. Repeatable after a crash. @throws DriverError */
  ensure(name: string, ctx: DriverContext): Promise<EnteredNetwork>;
  /**
   * A network of one unit, from which the databases of the network of its project are reached at 127.0.0.1. Absent:
   * this driver has none.
   */
  ensureMember?(name: string, member: NetworkMember, ctx: DriverContext): Promise<EnteredNetwork>;
  /** Absent: programs lead ports of the host into networks of this driver. */
  readonly forwards?: PortForwards;
  /** Where it is; null where there is none. */
  find(name: string): NetworkLocation | null;
  /** Absent is success. @throws DriverError */
  remove(name: string, ctx: DriverContext): Promise<void>;
  /** Names of all networks of this installation, whole or not. */
  list(): Promise<string[]>;
  /** Where no network is left, nothing of the installation stays on the host. */
  close(): Promise<void>;
}
