// The autoscaler: decides from the measurements of the last seconds how many instances a process type should have. The
// job of the application starts and stops the instances.
import type { Logger } from '../../core/log/log';
import type { ControlDatabase } from '../../db/control_database';
import type { Traffic } from '../../engines/ingress/ingress';
import type { Handle, RuntimeDriver, UnitUsage } from '../../drivers/runtime';
import { cpuPercent } from '../../drivers/runtime/usage';
import {
  autoscaledInstances,
  autoscaledProcesses,
  autoscaleProcess,
  type AutoscaledInstance,
  type AutoscaledProcess,
} from '../../models/applications/autoscaler';
import { WEB_PROCESS } from '../../models/processes/process';
import { decideInstances, withinWindow, type AutoscalerSample } from '../../models/processes/process/autoscale';

interface AutoscalerParts {
  database: ControlDatabase;
  runtime: Pick<RuntimeDriver, 'usage'>;
  log: Logger;
}

export interface Autoscaler {
  /** Measures, and scales process types that are due. Never rejects. @param traffic since the last call */
  run(traffic: readonly Traffic[]): Promise<void>;
}

const MIB = 1024 * 1024;

interface Measured {
  at: number;
  handle: Handle;
  usage: UnitUsage;
}

/** Measurements of a process type since its number of instances or its bounds last changed. */
interface Window {
  version: number;
  /** When it was last measured. */
  at: number;
  samples: AutoscalerSample[];
  /** By instance. */
  measured: Map<string, Measured>;
}

interface State extends AutoscalerParts {
  windows: Map<string, Window>;
  away: boolean;
}

/** It begins with nothing: after a start of the host the first decision takes as long as any. */
export function openAutoscaler(parts: AutoscalerParts): Autoscaler {
  const state: State = { ...parts, windows: new Map(), away: false };
  return {
    async run(traffic) {
      try {
        await runOnce(state, requestsByApplication(traffic));
        state.away = false;
      } catch (error) {
        // The traffic counted during the outage is lost.
        state.windows.clear();
        if (!state.away) state.log.warn({ err: error }, 'process types could not be autoscaled');
        state.away = true;
      }
    },
  };
}

async function runOnce(state: State, requests: ReadonlyMap<string, number>): Promise<void> {
  const processes = await autoscaledProcesses(state.database);
  const instances = processes.length ? await autoscaledInstances<Handle>(state.database, processes) : [];
  const usage = await state.runtime.usage(instances.map(({ handle }) => handle));
  const at = performance.now();
  const before = state.windows;
  state.windows = new Map();
  for (const process of processes) {
    const own = instances.filter(({ process_id }) => process_id === process.id);
    const measured = measuredAt(at, own, usage);
    const known = before.get(process.id);
    const last = known?.version === process.version ? known : undefined;
    const value = last ? valueOf(process, last, measured, requests.get(process.application_id) ?? 0, at) : null;
    const samples = value === null ? [] : withinWindow([...(last?.samples ?? []), { at, value }]);
    state.windows.set(process.id, { version: process.version, at, samples, measured });
    await change(state, process, samples);
  }
}

async function change(state: State, process: AutoscaledProcess, samples: AutoscalerSample[]): Promise<void> {
  const { instances } = decideInstances(process.autoscaling, samples, process.instances);
  if (instances === process.instances || !(await autoscaleProcess(state.database, process, instances))) return;
  state.windows.delete(process.id);
  state.log.info({ id: process.id, from: process.instances, to: instances }, 'autoscaled a process type');
}

/** The measure of the average instance since the last time, in the unit of the target; null where there is none. */
function valueOf(
  { autoscaling, type, instances, cpus, memory_mb }: AutoscaledProcess,
  last: Window,
  measured: ReadonlyMap<string, Measured>,
  requests: number,
  at: number,
): number | null {
  if (autoscaling.metric === 'requests_per_second')
    return type === WEB_PROCESS ? requests / ((at - last.at) / 1000) / instances : 0;
  if (autoscaling.metric === 'memory')
    return memory_mb && share(meanOf([...measured.values()].map(({ usage }) => usage.memory_bytes / MIB)), memory_mb);
  return cpus && share(meanOf(cpuSince(last, measured)), cpus * 100);
}

/** Percent of one core, of the instances that were there the last time. */
function cpuSince(last: Window, measured: ReadonlyMap<string, Measured>): number[] {
  return [...measured].flatMap(([id, now]) => {
    const before = last.measured.get(id);
    // Started anew since: its counters began at zero.
    if (!before || before.handle.pid !== now.handle.pid || before.handle.start_time !== now.handle.start_time)
      return [];
    return [cpuPercent(before.usage, now.usage, now.at - before.at)];
  });
}

function measuredAt(
  at: number,
  instances: readonly AutoscaledInstance<Handle>[],
  usage: ReadonlyMap<string, UnitUsage>,
): Map<string, Measured> {
  return new Map(
    instances.flatMap(({ id, handle }): [string, Measured][] => {
      const found = usage.get(handle.unit_id);
      return found ? [[id, { at, handle, usage: found }]] : [];
    }),
  );
}

/** Previews do not count: they have one instance each. */
function requestsByApplication(traffic: readonly Traffic[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { application_id, preview_id, requests } of traffic)
    if (preview_id === null) sums.set(application_id, (sums.get(application_id) ?? 0) + requests);
  return sums;
}

function meanOf(values: readonly number[]): number | null {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function share(value: number | null, whole: number): number | null {
  return value === null ? null : (100 * value) / whole;
}
