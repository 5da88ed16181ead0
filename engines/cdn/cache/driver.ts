// The embedded cache: an HTTP cache (RFC 9111) in the process that has the ingress.
import type { PurgeSpec } from '../cdn';
import { openEdge, type CdnEngine, type EdgeOptions } from '../edge/edge';
import { purgeMatcher } from '../edge/purge_matcher';
import { serveCached } from './serve';
import type { EmbeddedState } from './state';
import { openObjectStore } from './store';

export interface EmbeddedCdnLimits {
  directory: string;
  bytesMax: number;
  /** Each takes about 2 KB of memory. */
  objectsMax: number;
  /** Of small bodies that are held in memory. */
  memoryBytesMax: number;
  objectBytesMax: number;
  /** Time of an origin for the head of its response; absent: a minute. */
  headMs?: number;
}

export type EmbeddedCdnOptions = EmbeddedCdnLimits & EdgeOptions;

/** The one cache of this driver. */
export const NODE = 'embedded';
const HEAD_MS = 60_000;

export function openEmbeddedCdn({ directory, headMs = HEAD_MS, ...options }: EmbeddedCdnOptions): CdnEngine {
  const objectBytesMax = Math.min(options.objectBytesMax, options.bytesMax);
  return openEdge(options, (edge) => {
    const store = openObjectStore(directory, options);
    const state: EmbeddedState = { edge, store, objectBytesMax, headMs, fetches: new Map(), passed: new Map() };
    const purge = (zoneId: string, spec: PurgeSpec): Promise<void> => purgeObjects(state, zoneId, spec);
    return {
      name: 'embedded',
      cache: { serve: (visit) => serveCached(state, visit), invalidate: purge },
      nodes: () => [NODE],
      purge: (zoneId, spec) => purge(zoneId, spec),
      zonesChanged: () => Promise.resolve(),
      objects: store,
      close: () => store.close(),
    };
  });
}

async function purgeObjects(state: EmbeddedState, id: string, spec: PurgeSpec): Promise<void> {
  await state.store.ready;
  const matches = purgeMatcher(spec);
  for (const [name, fetch] of state.fetches) {
    // Before its head came, nobody knows what tags it will have.
    const isMeant = fetch.zone_id === id && (matches(fetch) || (spec.type === 'tags' && !fetch.hasHead));
    if (!isMeant) continue;
    fetch.isCancelled = true;
    fetch.flight?.cancelStoring();
    state.fetches.delete(name);
  }
  await state.store.purge(id, spec);
}
