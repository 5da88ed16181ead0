// The embedded cache: an HTTP cache (RFC 9111) in the ingress process.
import type { PurgeSpec } from '../cdn';
import { openEdge, type CdnEngine, type EdgeOptions } from '../edge/edge';
import { purgeMatcher } from '../edge/purge_matcher';
import { serveCached } from './serve';
import type { EmbeddedState } from './state';
import { openObjectStore } from './store';

export interface EmbeddedCdnLimits {
  directory: string;
  bytesMax: number;
  /** Maximum number of objects; each one takes about 2 KB of memory. */
  objectsMax: number;
  /** Memory for small bodies. */
  memoryBytesMax: number;
  objectBytesMax: number;
  /** Timeout for the response head of an origin; the default is one minute. */
  headMs?: number;
}

export type EmbeddedCdnOptions = EmbeddedCdnLimits & EdgeOptions;

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
      purge,
      objects: store,
      close: () => store.close(),
    };
  });
}

async function purgeObjects(state: EmbeddedState, id: string, spec: PurgeSpec): Promise<void> {
  await state.store.ready;
  const matches = purgeMatcher(spec);
  for (const [name, fetch] of state.fetches) {
    // Until the response head has arrived, the tags of the object are unknown.
    const isMeant = fetch.zone_id === id && (matches(fetch) || (spec.type === 'tags' && !fetch.hasHead));
    if (!isMeant) continue;
    fetch.isCancelled = true;
    fetch.flight?.cancelStoring();
    state.fetches.delete(name);
  }
  await state.store.purge(id, spec);
}
