// State shared by the parts of the embedded cache.
import type { EdgeState } from '../edge/edge_state';
import type { Flight } from './flight';
import type { ObjectStore } from './store';

export interface EmbeddedState {
  edge: EdgeState;
  store: ObjectStore;
  /** Size of the largest object that is stored. */
  objectBytesMax: number;
  /** Timeout for the response head of an origin. */
  headMs: number;
  /** Requests to origins that later requests may join. */
  fetches: Map<string, Fetch>;
  /** Addresses whose last response could not be stored, with the end of their pass-through time. */
  passed: Map<string, number>;
}

/** A pending request to an origin. */
export interface Fetch {
  zone_id: string;
  key: string;
  /** Empty until the response head has arrived. */
  tags: string[];
  hasHead: boolean;
  isCancelled: boolean;
  flight: Flight | null;
}
