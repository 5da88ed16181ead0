// Whether a unit runs and listens, from its run directory alone: before the runtime has been opened.
import { runDirectoryOf, isRunning, readHandle, readUnit } from './run_directory';
import type { Handle } from '../runtime';
import { networkTables } from './network_members';
import type { Unit } from './run_directory';
import { processesOfUnit } from './unit_processes';
import { listeningPorts } from './usage';

/** @param directory of the run directories. A host that does not tell who listens counts as one where the unit does. */
export async function isUnitListening(directory: string, unitId: string, port: number): Promise<boolean> {
  const runDirectory = runDirectoryOf(directory, unitId);
  const [unit, handle] = [await readUnit(runDirectory), readHandle(runDirectory, unitId)];
  if (unit === null || handle === null || !isRunning(handle)) return false;
  const ports = await portsOfUnit(unit, handle);
  return ports === null || ports.includes(port);
}

/** TCP ports on which its processes listen, in the network of the unit; null where the host does not tell. */
export function portsOfUnit(unit: Unit, handle: Handle): Promise<number[] | null> {
  const processes = processesOfUnit(unit, handle);
  return listeningPorts(
    processes.map(({ pid }) => pid),
    networkTables(unit, handle, processes),
  );
}
