// The embedded cache: an HTTP cache (RFC 9111) in the process that has the ingress.
import type { Outbound } from '../../outbound';
import type { CdnDriver, Edge, PurgeSpec } from '../../cdn';
import type { EdgeState } from './edge_state';
import { handleVisit } from './handle';
import { openOriginClient } from './origin';
import { openObjectStore, purgeMatcher } from './store';

export interface EmbeddedCdnOptions {
  directory: string;
  bytesMax: number;
  objectBytesMax: number;
  outbound: Outbound;
  log(message: string, error: unknown): void;
}

export interface EmbeddedCdn {
  driver: CdnDriver;
  edge: Edge;
  close(): void;
}

export function openEmbeddedCdn({
  directory,
  bytesMax,
  objectBytesMax,
  outbound,
  log,
}: EmbeddedCdnOptions): EmbeddedCdn {
  const state: EdgeState = {
    ...{ zones: new Map(), hosts: new Map(), fetches: new Map(), passed: new Map(), traffic: new Map() },
    store: openObjectStore(directory, bytesMax),
    origins: openOriginClient(outbound),
    ...{ objectBytesMax, log },
  };
  return {
    driver: driverOf(state),
    edge: {
      has: (host) => state.hosts.has(host),
      forcesHttps: (host) => state.hosts.get(host)?.zone.spec.force_https ?? false,
      handle: (request, response, visitor) => handleVisit(state, request, response, visitor),
    },
    close: () => state.origins.close(),
  };
}

function driverOf(state: EdgeState): CdnDriver {
  return {
    name: 'embedded',
    ensureZone(id, spec) {
      forgetHosts(state, id);
      const zone = { id, spec };
      state.zones.set(id, zone);
      for (const { host, domain_id } of spec.hosts) state.hosts.set(host, { zone, domain_id });
      return Promise.resolve();
    },
    async removeZone(id) {
      forgetHosts(state, id);
      state.zones.delete(id);
      await purge(state, id, { type: 'all', values: [] });
    },
    purge: (id, spec) => purge(state, id, spec),
    takeTraffic() {
      const taken = [...state.traffic.values()];
      state.traffic.clear();
      return taken;
    },
  };
}

function forgetHosts({ hosts }: EdgeState, id: string): void {
  for (const [host, { zone }] of hosts) if (zone.id === id) hosts.delete(host);
}

async function purge(state: EdgeState, id: string, spec: PurgeSpec): Promise<void> {
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
  state.store.purge(id, spec);
}
