// Visitors reach an ingress, which knows the zones.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Outbound } from '../../../core/outbound';
import { EDGE_FIELD, type CdnDriver, type CdnZoneSpec, type Edge, type PurgeSpec } from '../cdn';
import { forgetZone, setZone, type EdgeState, type ObjectCache } from './edge_state';
import { openOriginClient } from './origin';
import { handleVisit, passThrough } from './visit';

export interface EdgeOptions {
  outbound: Outbound;
  /** Absent: a new process knows no zones until they are ensured. */
  stored?: StoredZones;
  /** Secret shared by the ingresses of this installation; absent: known to this process only. */
  token?: string;
  /** Whether purges reach this cache now; while they do not, every request goes to the origin. Absent: always. */
  isCurrent?(): boolean;
  log(message: string, error: unknown): void;
}

export interface StoredZone {
  id: string;
  spec: CdnZoneSpec;
}

/** Zones of the last run. */
export interface StoredZones {
  load(): StoredZone[];
  /** Written within a second; the last of several calls wins. */
  save(zones: () => StoredZone[]): void;
  /** Resolves when the pending write is complete. */
  flush(): Promise<void>;
}

export interface CdnEngine {
  driver: CdnDriver;
  edge: Edge;
  /** For the handover of the objects to another process: once this resolves, this process adds none. */
  releaseObjects(): Promise<void>;
  /** Reverts `releaseObjects` when the other process did not start. */
  reclaimObjects(): void;
  /** Resolves when objects of the last run are found. */
  objectsLoaded(): Promise<void>;
  /** Purges no longer reach this process: from now on, every request goes to the origin. */
  bypassCache(): void;
  close(): Promise<void>;
}

/** The cache behind an edge. */
interface EngineParts {
  name: string;
  cache: ObjectCache;
  purge(zoneId: string, purge: PurgeSpec): Promise<void>;
  objects: { releaseDirectory(): Promise<void>; reclaimDirectory(): void; ready: Promise<void> };
  close(): Promise<void>;
}

export function openEdge(options: EdgeOptions, open: (state: EdgeState) => EngineParts): CdnEngine {
  const { outbound, stored, isCurrent, log, token = randomBytes(16).toString('hex') } = options;
  const state: EdgeState = {
    ...{ zones: new Map(), hosts: new Map(), traffic: new Map(), log, token },
    origins: openOriginClient(outbound, token),
    cache: { serve: () => undefined, invalidate: () => Promise.resolve() },
  };
  const engine = open(state);
  state.cache = isCurrent ? whileCurrent(engine.cache, isCurrent) : engine.cache;
  for (const { id, spec } of stored?.load() ?? []) setZone(state, id, spec);
  return {
    driver: driverOf(state, engine, stored),
    edge: {
      has: (host) => state.hosts.has(host),
      forcesHttps: (host) => state.hosts.get(host)?.zone.spec.force_https ?? false,
      handle: (request, response, visitor) => handleVisit(state, request, response, visitor),
      isOwn: ({ headers }) => isToken(headers[EDGE_FIELD], token),
    },
    releaseObjects: () => engine.objects.releaseDirectory(),
    reclaimObjects: () => engine.objects.reclaimDirectory(),
    objectsLoaded: () => engine.objects.ready,
    bypassCache: () => void (state.cache = { serve: passThrough, invalidate: () => Promise.resolve() }),
    async close() {
      await stored?.flush();
      await engine.close();
      state.origins.close();
    },
  };
}

function whileCurrent(cache: ObjectCache, isCurrent: () => boolean): ObjectCache {
  return { ...cache, serve: (visit) => (isCurrent() ? cache.serve(visit) : passThrough(visit)) };
}

function isToken(given: string | string[] | undefined, token: string): boolean {
  if (given === undefined) return false;
  const [one, other] = [Buffer.from(String(given)), Buffer.from(token)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function driverOf(state: EdgeState, engine: EngineParts, stored?: StoredZones): CdnDriver {
  const save = (): void => stored?.save(() => [...state.zones.values()]);
  return {
    name: engine.name,
    async ensureZone(id, spec) {
      setZone(state, id, spec);
      save();
    },
    async removeZone(id) {
      forgetZone(state, id);
      // A removed zone must not reappear at the next start.
      save();
      await stored?.flush();
      await engine.purge(id, { type: 'all', values: [] });
    },
    purge: (id, purge) => engine.purge(id, asKept(state.zones.get(id)?.spec, purge)),
    takeTraffic() {
      const taken = [...state.traffic.values()];
      state.traffic.clear();
      return taken;
    },
  };
}

/** Addresses of objects have no query strings where the zone ignores them. */
function asKept(spec: CdnZoneSpec | undefined, { type, values }: PurgeSpec): PurgeSpec {
  const hasQueries = spec?.cache.query_string !== 'ignore' || (type !== 'urls' && type !== 'prefixes');
  return { type, values: hasQueries ? values : values.map((value) => value.split('?', 1)[0] as string) };
}
