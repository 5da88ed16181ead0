// The decision of the autoscaler: a pure function from what was seen to how many instances there should be. Quick up,
// slow down, and never because of one look: a wrong step down costs requests, a wrong step up a little money.
import { clamped, type Autoscaling } from './scale';

/** Between two looks, kept in `processes.autoscaler`. */
export interface AutoscalerState {
  /** Looks in a row above the target, and below it. */
  above: number;
  below: number;
  /** When the number of instances was last changed by the autoscaler. */
  changed_at: string | null;
}

export interface Measurement {
  /** Wanted instances now. */
  instances: number;
  /** The measure of the average instance, in the unit of the target; null where nothing was measured. */
  value: number | null;
  now: Date;
}

export interface Decision {
  state: AutoscalerState;
  instances: number;
}

/** Time between two looks. */
export const POLL_MS = 30_000;

/** Near the target nothing happens: as a share of it. */
const UPPER = 1.1;
const LOWER = 0.7;
/** Looks in a row before something happens: a minute up, five down. */
const LOOKS_UP = 2;
const LOOKS_DOWN = 10;
/** New instances need a while until they take their share; what is measured meanwhile says little. */
const COOL_DOWN_MS = 60_000;

const FRESH: AutoscalerState = { above: 0, below: 0, changed_at: null };

/** What follows from one look. Bounds that were changed act at once. */
export function decide(
  policy: Autoscaling,
  before: AutoscalerState | null,
  { instances, value, now }: Measurement,
): Decision {
  const state = before ?? FRESH;
  const bounded = clamped(instances, policy);
  if (bounded !== instances) return changed(bounded, now);
  if (value === null || isCooling(state, now)) return { state: { ...state, above: 0, below: 0 }, instances };
  const seen = {
    ...state,
    above: value > policy.target * UPPER ? state.above + 1 : 0,
    below: value < policy.target * LOWER ? state.below + 1 : 0,
  };
  const wanted = nextCount(policy, seen, instances, value);
  return wanted === instances ? { state: seen, instances } : changed(wanted, now);
}

// Up to what the load asks for, down one at a time: a load that goes away often comes back.
function nextCount(policy: Autoscaling, { above, below }: AutoscalerState, instances: number, value: number): number {
  const needed = clamped(Math.ceil((instances * value) / policy.target), policy);
  if (above >= LOOKS_UP) return Math.max(needed, instances);
  if (below >= LOOKS_DOWN && needed < instances) return instances - 1;
  return instances;
}

function changed(instances: number, now: Date): Decision {
  return { state: { above: 0, below: 0, changed_at: now.toISOString() }, instances };
}

function isCooling({ changed_at }: AutoscalerState, now: Date): boolean {
  return changed_at !== null && now.getTime() - Date.parse(changed_at) < COOL_DOWN_MS;
}
