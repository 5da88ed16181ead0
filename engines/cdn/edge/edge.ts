// What all engines of CDN zones have in common: visitors come to the ingress of this host, which knows the zones.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Outbound } from '../../../core/outbound';
import { EDGE_FIELD, type CdnDriver, type CdnZoneSpec, type Edge, type PurgeSpec } from '../cdn';
import type { DriverContext } from '../../../core/driver';
import { forgetZone, setZone, type EdgeState, type ObjectCache } from './edge_state';
import { openOriginClient } from './origin';
import { handleVisit, passThrough } from './visit';

export interface EdgeOptions {
  outbound: Outbound;
  /** Absent: a new process knows no zones before they are ensured. */
  stored?: StoredZones;
  /** Known to the ingresses of this installation only; absent: to that of this process. */
  token?: string;
  log(message: string, error: unknown): void;
}

export interface StoredZone {
  id: string;
  spec: CdnZoneSpec;
}

/** The zones of the last run. */
export interface StoredZones {
  load(): StoredZone[];
  /** Written within a second; of many calls the last one counts. */
  save(zones: () => StoredZone[]): void;
  /** Resolves when what was saved is written. */
  flush(): Promise<void>;
}

export interface CdnEngine {
  driver: CdnDriver;
  edge: Edge;
  /** Another process takes over the objects: when this resolves, nothing is added to them here any more. */
  releaseObjects(): Promise<void>;
  /** The other process did not start. */
  reclaimObjects(): void;
  /** Purges do not come here any more: origins answer from now on. */
  bypassCache(): void;
  close(): Promise<void>;
}

/** What an engine adds to the edge. */
interface EngineParts {
  name: string;
  cache: ObjectCache;
  nodes(): readonly string[];
  purge(zoneId: string, purge: PurgeSpec, node: string, ctx: DriverContext): Promise<void>;
  /** A zone is served as it is now when this resolves. */
  zonesChanged(ctx: DriverContext): Promise<void>;
  /** Absent: the objects are not those of this process. */
  objects?: { releaseDirectory(): Promise<void>; reclaimDirectory(): void };
  close(): Promise<void>;
}

export function openEdge(options: EdgeOptions, open: (state: EdgeState) => EngineParts): CdnEngine {
  const { outbound, stored, log, token = randomBytes(16).toString('hex') } = options;
  const state: EdgeState = {
    ...{ zones: new Map(), hosts: new Map(), traffic: new Map(), log, token },
    origins: openOriginClient(outbound, token),
    cache: { serve: () => undefined, invalidate: () => Promise.resolve() },
  };
  const engine = open(state);
  state.cache = engine.cache;
  for (const { id, spec } of stored?.load() ?? []) setZone(state, id, spec);
  return {
    driver: driverOf(state, engine, stored),
    edge: {
      has: (host) => state.hosts.has(host),
      forcesHttps: (host) => state.hosts.get(host)?.zone.spec.force_https ?? false,
      handle: (request, response, visitor) => handleVisit(state, request, response, visitor),
      isOwn: ({ headers }) => isToken(headers[EDGE_FIELD], token),
    },
    releaseObjects: async () => engine.objects?.releaseDirectory(),
    reclaimObjects: () => engine.objects?.reclaimDirectory(),
    bypassCache: () => void (state.cache = { serve: passThrough, invalidate: () => Promise.resolve() }),
    async close() {
      await stored?.flush();
      await engine.close();
      state.origins.close();
    },
  };
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
    async ensureZone(id, spec, ctx) {
      setZone(state, id, spec);
      save();
      await engine.zonesChanged(ctx);
    },
    async removeZone(id, ctx) {
      forgetZone(state, id);
      // A zone that is gone must not come back with the next start.
      save();
      await stored?.flush();
      for (const node of engine.nodes()) await engine.purge(id, { type: 'all', values: [] }, node, ctx);
    },
    nodes: () => engine.nodes(),
    purge: (id, purge, node, ctx) => engine.purge(id, asKept(state.zones.get(id)?.spec, purge), node, ctx),
    takeTraffic() {
      const taken = [...state.traffic.values()];
      state.traffic.clear();
      return taken;
    },
  };
}

/** Where query strings are no part of an address, no object has one. */
function asKept(spec: CdnZoneSpec | undefined, { type, values }: PurgeSpec): PurgeSpec {
  const hasQueries = spec?.cache.query_string !== 'ignore' || (type !== 'urls' && type !== 'prefixes');
  return { type, values: hasQueries ? values : values.map((value) => value.split('?', 1)[0] as string) };
}
