// The networks of units: there from before the first unit of a project is until its last one has gone.
import { DriverError, driverContext } from '../../../core/driver';
import type { EnteredNetwork, NetworkDriver, NetworkMember } from '../../network';
import { type NetworkLocation, isPortTaken } from '../../../core/outbound/network_location';
import { openPublishedPorts, type PublishedPorts } from '../../network/published_ports';
import { networksInUse, portsToPublish } from '../network_members';
import { isFreeOnLoopback } from '../usage';

export interface UnitNetworks {
  /** `start` gets the network, which stays at least until it has ended. `member`: it is one unit's alone. */
  within<T>(name: string, start: (network: EnteredNetwork) => Promise<T>, member?: NetworkMember): Promise<T>;
  /** null: it is not there. */
  locationOf(name: string): NetworkLocation | null;
  /** Whether a port is free in a network; undefined: on the host. */
  portCheck(name: string | undefined): ((port: number) => Promise<boolean>) | undefined;
  /** Whether a server of the network could have the port, which it gets on the host too. */
  isFreeForServer(port: number, name: string): Promise<boolean>;
  /** Publishes the ports of the existing units on the host. */
  publish(): Promise<void>;
  /** Removes networks in which no unit is. */
  sweep(): Promise<void>;
  /** Published ports stay. */
  close(): void;
}

const NO_MEMBERS = 'Units of this host have no networks of their own within that of their project.';
const ENSURE_MS = 30_000;
const REMOVE_MS = 30_000;

export function openUnitNetworks(
  directory: string,
  driver: NetworkDriver,
  log: (message: string, error: unknown) => void,
): UnitNetworks {
  const starting = new Map<string, number>();
  let starts = 0;
  const note = (name: string, change: 1 | -1): void => {
    const count = (starting.get(name) ?? 0) + change;
    if (count > 0) starting.set(name, count);
    else starting.delete(name);
  };
  const sweep = async (): Promise<void> => {
    const before = starts;
    const [all, used] = [await driver.list(), await networksInUse(directory)];
    for (const name of all) {
      // A start since may have its unit in it by now.
      if (used.has(name) || starting.has(name) || starts !== before) continue;
      await driver.remove(name, driverContext(REMOVE_MS));
    }
  };
  const failed = (error: unknown): void => log('Networks that no unit uses could not be removed.', error);
  return {
    ...portsOf(directory, driver, openPublishedPorts(driver, log)),
    async within(name, start, member) {
      starts += 1;
      note(name, 1);
      try {
        return await start(await ensure(driver, name, member));
      } catch (error) {
        setImmediate(() => void sweep().catch(failed));
        throw error;
      } finally {
        note(name, -1);
      }
    },
    locationOf: (name) => driver.find(name),
    sweep: () => sweep().catch(failed),
  };
}

function ensure(driver: NetworkDriver, name: string, member: NetworkMember | undefined): Promise<EnteredNetwork> {
  const ctx = driverContext(ENSURE_MS);
  if (!member) return driver.ensure(name, ctx);
  if (!driver.ensureMember) throw new DriverError('unsupported', NO_MEMBERS);
  return driver.ensureMember(name, member, ctx);
}

function portsOf(
  directory: string,
  driver: NetworkDriver,
  published: PublishedPorts,
): Pick<UnitNetworks, 'portCheck' | 'isFreeForServer' | 'publish' | 'close'> {
  return {
    portCheck: (name) => (name === undefined ? undefined : portCheckIn(driver.find(name))),
    isFreeForServer: async (port, name) =>
      (await portCheckIn(driver.find(name))(port)) && (published.has(port) || (await isFreeOnLoopback(port))),
    publish: () => published.publish(() => portsToPublish(directory)),
    close: () => published.close(),
  };
}

function portCheckIn(location: NetworkLocation | null): (port: number) => Promise<boolean> {
  return async (port) => location === null || !(await isPortTaken(location, port));
}
