// Measures the usage of instances and reads the counters of the ingress every 15 seconds, and stores both as metric
// points. Reading resets the counters, so traffic is also passed on to the autoscaler from here.
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';
import type { IngressDriver, Traffic } from '../../engines/ingress/ingress';
import type { Handle, RuntimeDriver, UnitUsage } from '../../drivers/runtime';
import { cpuPercent } from '../../drivers/runtime/usage';
import type { ControlDatabase } from '../../db/control_database';
import { SAMPLE_MS } from '../../models/processes/process/autoscale';
import { addMetricPoints, mergePoints, type MetricPointInput } from '../../models/applications/metric_point';
import {
  countInstances,
  runningInstances,
  storeUsage,
  trafficParts,
  type SampledInstance,
} from '../../models/applications/sample';
import { openAutoscaler } from '../../jobs/applications/autoscaler';
import { countPoints, networkBetween, trafficPoints, usagePoints, type Used } from './sampled_points';

export { openRouterLines, type RouterLines } from './router_lines';

interface SamplerParts {
  database: ControlDatabase;
  runtime: Pick<RuntimeDriver, 'usage'>;
  ingress: Pick<IngressDriver, 'takeTraffic'>;
  log: Logger;
}

export interface Sampler {
  /** Measures now; also what the timer does. Never rejects. */
  sample(): Promise<void>;
  /** Lets the autoscaler decide now; also what the timer does. Never rejects. */
  autoscale(): Promise<void>;
  /** Reads the remaining counters, and stops. */
  stop(): Promise<void>;
}

/** In ticks of the autoscaler. */
const SAMPLE_EVERY = 3;
const MIB = 1024 * 1024;
/** Points, and counts of the ingress, that wait while the database is away. */
const WAITING_MAX = 100_000;

type Instance = SampledInstance<Handle>;

interface Before {
  /** Clock of this process, in milliseconds. */
  at: number;
  handle: Handle;
  usage: UnitUsage;
}

interface Counted {
  at: Date;
  traffic: Traffic;
  /** Null until the next sample. */
  countedByHost: ReadonlySet<string> | null;
}

interface State extends SamplerParts {
  /** Last sample of each instance. */
  before: Map<string, Before>;
  /** Counters of the ingress: reading resets them, so they are kept here until they are written. */
  counted: Counted[];
  /** The same, until the autoscaler has it. */
  unseen: Traffic[];
  /** Points of minutes that are not written yet. */
  waiting: Map<string, MetricPointInput>;
}

/** Starts sampling in the background. */
export function startSampler(parts: SamplerParts, everyMs = SAMPLE_MS): Sampler {
  const state: State = { ...parts, before: new Map(), counted: [], unseen: [], waiting: new Map() };
  const autoscaler = openAutoscaler(parts);
  let running: Promise<void> = Promise.resolve();
  const after = (work: () => Promise<void>): Promise<void> => (running = running.then(work, work));
  const autoscale = (): Promise<void> =>
    after(() => {
      takeTraffic(state);
      return autoscaler.run(state.unseen.splice(0));
    });
  const sample = (): Promise<void> => after(() => sampleOnce(state, new Date()));
  const { log } = parts;
  const failure = 'metrics could not be written';
  const autoscaling = repeatWork({ name: 'autoscaler', everyMs, log, failure: 'autoscaling has failed' }, autoscale);
  const sampling = repeatWork({ name: 'samples', everyMs: everyMs * SAMPLE_EVERY, log, failure }, sample);
  return {
    sample,
    autoscale,
    async stop() {
      await autoscaling.stop();
      await sampling.finish();
    },
  };
}

async function sampleOnce(state: State, at: Date): Promise<void> {
  const { database } = state;
  const usage = await usageOf(state, await runningInstances<Handle>(database));
  const countedByHost = new Set(usage.filter(({ network }) => network).map(({ instance }) => instance.id));
  takeTraffic(state);
  for (const counted of state.counted) counted.countedByHost ??= countedByHost;
  addWaiting(state, usagePoints(usage, at));
  addWaiting(state, countPoints(await countInstances(database), at));
  await attributeTraffic(state);
  await storeUsage(
    database,
    usage.map(({ instance, cpu_percent, memory_mb }) => ({ id: instance.id, cpu_percent, memory_mb })),
  );
  await write(state);
}

function takeTraffic({ ingress, counted, unseen }: State): void {
  const at = new Date();
  for (const traffic of ingress.takeTraffic()) {
    if (counted.length < WAITING_MAX) counted.push({ at, traffic, countedByHost: null });
    if (unseen.length < WAITING_MAX) unseen.push(traffic);
  }
}

async function usageOf(state: State, instances: readonly Instance[]): Promise<Used[]> {
  const found = await state.runtime.usage(instances.map(({ handle }) => handle));
  const at = performance.now();
  const { before } = state;
  state.before = new Map();
  return instances.flatMap((instance): Used[] => {
    const { id, handle } = instance;
    const usage = found.get(handle.unit_id);
    if (!usage) return [];
    state.before.set(id, { at, handle, usage });
    const last = before.get(id);
    const memory_mb = Math.round(usage.memory_bytes / MIB);
    // Started anew since: its counters began at zero.
    if (!last || last.handle.pid !== handle.pid || last.handle.start_time !== handle.start_time)
      return [{ instance, memory_mb, cpu_percent: null, network: null }];
    return [
      {
        instance,
        memory_mb,
        cpu_percent: cpuPercent(last.usage, usage, at - last.at),
        network: networkBetween(last.usage, usage),
      },
    ];
  });
}

async function attributeTraffic(state: State): Promise<void> {
  const parts = await trafficParts(state.database, [
    ...new Set(state.counted.map(({ traffic }) => traffic.application_id)),
  ]);
  for (const { at, traffic, countedByHost } of state.counted) {
    const part = parts.get(traffic.application_id);
    if (part) addWaiting(state, trafficPoints(traffic, part, countedByHost ?? new Set(), at));
  }
  state.counted = [];
}

function addWaiting(state: State, points: readonly MetricPointInput[]): void {
  if (state.waiting.size < WAITING_MAX) mergePoints(points, state.waiting);
}

async function write(state: State): Promise<void> {
  await addMetricPoints(state.database, state.waiting.values());
  state.waiting.clear();
}
