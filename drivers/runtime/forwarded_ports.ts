// Ports of units in isolated networks to which the kernel forwards, if the network driver supports it.
import { isDeepStrictEqual } from 'node:util';
import type { DriverContext } from '../../core/driver';
import type { ForwardedPort, PortForwards } from '../network';
import type { PortToForward } from '../runtime';
import { readUnit, runDirectoryOf } from './run_directory';

/** Forwards of the units in one directory. */
export interface UnitForwards {
  directory: string;
  /** undefined: nothing is forwarded. */
  driver: PortForwards | undefined;
}

/** @throws DriverError */
export async function forwardPort(
  units: UnitForwards,
  unitId: string,
  port: PortToForward | null,
  ctx: DriverContext,
): Promise<void> {
  if (!units.driver) return;
  const wanted = await intoNetwork(units, unitId, port);
  if (!isDeepStrictEqual(await units.driver.find(unitId), wanted)) await units.driver.set(unitId, wanted, ctx);
}

/** Whether it is as wanted; also where nothing can be forwarded. */
export async function isForwarded(units: UnitForwards, unitId: string, port: PortToForward | null): Promise<boolean> {
  if (!units.driver) return true;
  return isDeepStrictEqual(await units.driver.find(unitId), await intoNetwork(units, unitId, port));
}

/** null: the unit is not in an isolated network, or has no forwarded port. */
async function intoNetwork(
  { directory }: UnitForwards,
  unitId: string,
  port: PortToForward | null,
): Promise<ForwardedPort | null> {
  const unit = port && (await readUnit(runDirectoryOf(directory, unitId)));
  return port && unit?.network ? { network: unit.network.name, ...port } : null;
}
