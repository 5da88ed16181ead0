// Asks the origin for an object, once for all who want it, and puts the response into the cache where that is allowed.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { EdgeState, Fetch, Zone } from './edge_state';
import { startFlight, type Flight } from './flight';
import { responseFields, tagsOf, withoutCacheFields, type HeaderFields } from './headers';
import { conditionalFields, decide, type Decision } from './policy';
import type { StoredObject } from './store';

/** What a visitor wants, in the form that the cache compares. */
export interface ObjectRequest {
  zone: Zone;
  key: string;
  /** As it goes to the origin. */
  target: string;
  headers: HeaderFields;
  /** Counts a request to the origin. */
  countOrigin(): void;
}

export type Fetched =
  /** On its way into the cache; others may read it too. */
  | { kind: 'flight'; status: number; headers: HeaderFields; size: number | null; flight: Flight; vary: Vary }
  /** The stored object still holds. */
  | { kind: 'renewed'; object: StoredObject }
  /** Not to be kept: for the one who asked. */
  | { kind: 'passed'; response: IncomingMessage }
  | { kind: 'failed'; error: unknown };

type Vary = Record<string, string>;

const PASSED_MS = 60_000;
const PASSED_MAX = 10_000;
/** Nobody waits for an origin longer than this for the head of its response. */
const HEAD_MS = 60_000;

/** @param stale what is in the cache, if anything. Others who ask for the same meanwhile wait for the same answer. */
export function fetchObject(
  state: EdgeState,
  wanted: ObjectRequest,
  stale: StoredObject | null,
): { fetched: Promise<Fetched>; isLeader: boolean } {
  const name = `${wanted.zone.id} ${wanted.key}`;
  const known = state.fetches.get(name) as SharedFetch | undefined;
  if (known) return { fetched: known.fetched, isLeader: false };
  const own: SharedFetch = {
    ...{ zone_id: wanted.zone.id, key: wanted.key, tags: [], hasHead: false, isCancelled: false, flight: null },
    fetched: Promise.resolve({ kind: 'failed', error: null }),
  };
  state.fetches.set(name, own);
  const forget = (): void => {
    if (state.fetches.get(name) === own) state.fetches.delete(name);
  };
  own.fetched = request(state, wanted, stale, own).catch((error: unknown) => ({ kind: 'failed' as const, error }));
  void own.fetched.then((fetched) => {
    if (fetched.kind === 'flight') void fetched.flight.ended.then(forget);
    else forget();
  });
  return { fetched: own.fetched, isLeader: true };
}

interface SharedFetch extends Fetch {
  fetched: Promise<Fetched>;
}

async function request(
  state: EdgeState,
  wanted: ObjectRequest,
  stale: StoredObject | null,
  fetch: Fetch,
): Promise<Fetched> {
  const { zone, key, target, headers } = wanted;
  const conditions = stale ? conditionalFields(stale.policy, key, headers as IncomingHttpHeaders) : {};
  wanted.countOrigin();
  const response = await state.origins.send(zone.spec.origin, {
    ...{ method: 'GET', target, body: null },
    headers: { ...headers, ...(conditions as HeaderFields) },
    signal: AbortSignal.timeout(HEAD_MS),
  });
  const status = response.statusCode ?? 502;
  if (status === 304 && stale) return renewed(state, wanted, stale, response);
  fetch.tags = tagsOf(response.headers);
  fetch.hasHead = true;
  const decision = decide(
    { key, request: headers as IncomingHttpHeaders, status, response: response.headers },
    zone.spec.cache,
  );
  const announced = Number(response.headers['content-length'] ?? 0);
  if (!decision.isStorable || fetch.isCancelled || announced > state.objectBytesMax) {
    if (!fetch.isCancelled && !decision.isPersonal) markPassed(state, wanted);
    return { kind: 'passed', response };
  }
  return store(state, wanted, response, decision, fetch);
}

function renewed(
  state: EdgeState,
  { zone, key, headers }: ObjectRequest,
  stale: StoredObject,
  response: IncomingMessage,
): Fetched {
  response.resume();
  const fields = responseFields(response.headers);
  delete fields['content-length'];
  const merged = { ...stale.headers, ...fields } as IncomingHttpHeaders;
  const { policy } = decide(
    { key, request: headers as IncomingHttpHeaders, status: stale.status, response: merged },
    zone.spec.cache,
  );
  state.store.renew(stale, fields, policy);
  return { kind: 'renewed', object: stale };
}

async function store(
  state: EdgeState,
  { zone, key, headers: asked }: ObjectRequest,
  response: IncomingMessage,
  decision: Decision,
  fetch: Fetch,
): Promise<Fetched> {
  const status = response.statusCode ?? 502;
  const headers = responseFields(response.headers);
  const vary = Object.fromEntries(decision.vary.map((name) => [name, String(asked[name] ?? '')]));
  const object = await state.store.create({
    ...{ zone_id: zone.id, key, status, headers, tags: fetch.tags, vary },
    stale_while_revalidate: decision.staleWhileRevalidate,
    stale_if_error: decision.staleIfError,
    policy: decision.policy.toObject(),
  });
  const flight = startFlight(response, object, state.objectBytesMax);
  fetch.flight = flight;
  if (fetch.isCancelled) flight.cancelStoring();
  const size = response.headers['content-length'] === undefined ? null : Number(response.headers['content-length']);
  return { kind: 'flight', status, headers: withoutCacheFields(headers), size, flight, vary };
}

/** The next requests go straight through, each for itself. */
function markPassed({ passed }: EdgeState, { zone, key }: ObjectRequest): void {
  if (passed.size >= PASSED_MAX) passed.clear();
  passed.set(`${zone.id} ${key}`, Date.now() + PASSED_MS);
}

export function isPassed({ passed }: EdgeState, { zone, key }: ObjectRequest): boolean {
  return (passed.get(`${zone.id} ${key}`) ?? 0) > Date.now();
}
