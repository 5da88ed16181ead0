// Whether a unit runs and listens, from its run directory alone: before the runtime has been opened.
import { runDirectoryOf, isRunning, readHandle, readUnit } from './run_directory';
import { processesOfUnit } from './unit_processes';
import { listeningPorts } from './usage';

/** @param directory of the run directories. A host that does not tell who listens counts as one where the unit does. */
export async function isUnitListening(directory: string, unitId: string, port: number): Promise<boolean> {
  const runDirectory = runDirectoryOf(directory, unitId);
  const [unit, handle] = [await readUnit(runDirectory), readHandle(runDirectory, unitId)];
  if (unit === null || handle === null || !isRunning(handle)) return false;
  const ports = await listeningPorts(processesOfUnit(unit, handle).map(({ pid }) => pid));
  return ports === null || ports.includes(port);
}
