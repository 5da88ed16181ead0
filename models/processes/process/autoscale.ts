// The autoscaler's decision: a pure function from measurements to the desired number of instances. Scale up fast, down
// slowly, and never on a single measurement: a wrong step down costs requests, a wrong step up costs money.
import { clamped, type Autoscaling } from './scale';

/** What one interval gave: the measure of the average instance, in the unit of the target. */
export interface AutoscalerSample {
  /** Its end, in milliseconds of a clock that only goes forward. */
  at: number;
  value: number;
}

/** Time between two measurements. A step of the load is answered after 10 to 15 s. */
export const SAMPLE_MS = 5_000;
/** Measurements older than this are not used. */
export const WINDOW_MS = 5 * 60_000;

/** Near the target nothing happens: as a share of it. */
const UPPER = 1.1;
const LOWER = 0.7;
/** Measurements in a row that count as one load. */
const SAMPLES_OF_LOAD = 2;

/**
 * How many instances there should be. Bounds that were changed act at once.
 * @param samples since the number of instances last changed, oldest first: after a change the caller begins anew, so
 * that nothing is counted twice
 */
export function decideInstances(
  policy: Autoscaling,
  samples: readonly AutoscalerSample[],
  instances: number,
): { instances: number } {
  const bounded = clamped(instances, policy);
  if (bounded !== instances) return { instances: bounded };
  const last = samples.slice(-SAMPLES_OF_LOAD);
  if (last.length === SAMPLES_OF_LOAD && last.every(({ value }) => value > policy.target * UPPER))
    return { instances: Math.max(instances, instancesFor(policy, instances, meanOf(last))) };
  return { instances: isCalm(policy, samples, instances) ? instances - 1 : instances };
}

/** The samples that still count at the time of the newest one. */
export function withinWindow(samples: readonly AutoscalerSample[]): AutoscalerSample[] {
  const newest = samples.at(-1)?.at ?? 0;
  return samples.filter(({ at }) => at >= newest - WINDOW_MS);
}

// Down one at a time: a load that goes away often comes back. The highest load of the window counts.
function isCalm(policy: Autoscaling, samples: readonly AutoscalerSample[], instances: number): boolean {
  const [oldest, newest] = [samples[0], samples.at(-1)];
  if (!oldest || !newest || newest.at - oldest.at < WINDOW_MS - SAMPLE_MS) return false;
  const highest = Math.max(
    ...samples.slice(1).map((sample, index) => meanOf([samples[index] as AutoscalerSample, sample])),
  );
  return highest < policy.target * LOWER && instancesFor(policy, instances, highest) < instances;
}

function instancesFor(policy: Autoscaling, instances: number, value: number): number {
  return clamped(Math.ceil((instances * value) / policy.target), policy);
}

function meanOf(samples: readonly AutoscalerSample[]): number {
  return samples.reduce((sum, { value }) => sum + value, 0) / samples.length;
}
