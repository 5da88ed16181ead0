// What the parts of the embedded cache share.
import type { EdgeState } from '../edge/edge_state';
import type { Flight } from './flight';
import type { ObjectStore } from './store';

export interface EmbeddedState {
  edge: EdgeState;
  store: ObjectStore;
  /** Bytes of the largest object that is kept. */
  objectBytesMax: number;
  /** Nobody waits longer for the head of an origin's response. */
  headMs: number;
  /** Requests to origins that others may wait for. */
  fetches: Map<string, Fetch>;
  /** Addresses whose last response could not be kept, until when they are passed through. */
  passed: Map<string, number>;
}

/** A request to an origin on its way. */
export interface Fetch {
  zone_id: string;
  key: string;
  /** Empty before the head of the response. */
  tags: string[];
  hasHead: boolean;
  isCancelled: boolean;
  flight: Flight | null;
}
