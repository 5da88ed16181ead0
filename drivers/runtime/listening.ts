// Whether a unit runs and listens, from its run directory alone: before the runtime has been opened.
import { runDirectoryOf, isRunning, readHandle, readUnit } from './run_directory';
import type { Handle, Listener } from '../runtime';
import { networkTables } from './network_members';
import type { Unit } from './run_directory';
import { processesOfUnit } from './units/unit_processes';
import { findListeners } from './usage';

/** True where the host does not show which process listens. @param directory parent of the run directories */
export async function isUnitListening(directory: string, unitId: string, port: number): Promise<boolean> {
  const runDirectory = runDirectoryOf(directory, unitId);
  const [unit, handle] = [await readUnit(runDirectory), readHandle(runDirectory, unitId)];
  if (unit === null || handle === null || !isRunning(handle)) return false;
  const ports = await portsOfUnit(unit, handle);
  return ports === null || ports.includes(port);
}

/** TCP ports of the unit's listeners, as reached from outside; null where the host does not show them. */
export async function portsOfUnit(unit: Unit, handle: Handle): Promise<number[] | null> {
  const listeners = await listenersOfUnit(unit, handle);
  return listeners && [...new Set(listeners.map(({ port }) => port))];
}

/** Like `portsOfUnit`, with the addresses of the listeners. */
export async function listenersOfUnit(unit: Unit, handle: Handle): Promise<Listener[] | null> {
  const processes = processesOfUnit(unit, handle);
  const listeners = await findListeners(
    processes.map(({ pid }) => pid),
    networkTables(unit, handle, processes),
  );
  const { exposed } = unit;
  if (!exposed || listeners === null) return listeners;
  return listeners.map((one) => (one.port === exposed.port ? { ...one, port: exposed.reached_at } : one));
}
