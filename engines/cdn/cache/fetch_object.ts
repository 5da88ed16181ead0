// Fetches an object from the origin, once for all concurrent requests, and stores the response where that is allowed.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { EmbeddedState, Fetch } from './state';
import type { ObjectRequest } from '../edge/visit';
import { startFlight, type Flight } from './flight';
import { renewedFields, responseFields, TAGS_MAX, tagsOf, withoutCacheFields } from '../edge/headers';
import { conditionalFields, decide, isEndKnown, type Decision } from '../edge/policy';
import type { Description, StoredObject } from './stored_object';

export type Fetched =
  /** Being written into the cache; other requests may read it too. */
  | ({ kind: 'flight'; size: number | null; flight: Flight } & Pick<
      Description,
      'status' | 'headers' | 'vary' | 'born_at'
    >)
  /** The origin confirmed the stored object with a 304. */
  | { kind: 'renewed'; object: StoredObject }
  /** Not cacheable: for the request that triggered the fetch only. */
  | { kind: 'passed'; response: IncomingMessage }
  | { kind: 'failed'; error: unknown };

const PASSED_MS = 60_000;
const PASSED_MAX = 10_000;

/** @param stale the stored object, if any. Concurrent requests for the same object wait for the same response. */
export function fetchObject(
  state: EmbeddedState,
  wanted: ObjectRequest,
  stale: StoredObject | null,
): { fetched: Promise<Fetched>; isLeader: boolean } {
  const name = nameOf(wanted);
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
  state: EmbeddedState,
  wanted: ObjectRequest,
  stale: StoredObject | null,
  fetch: Fetch,
): Promise<Fetched> {
  const { zone, key, target, headers } = wanted;
  const conditions = stale ? conditionalFields(stale.headers as IncomingHttpHeaders) : {};
  wanted.countOrigin();
  const response = await withinTime(state.headMs, (signal) =>
    state.edge.origins.send(zone.spec.origin, {
      ...{ method: 'GET', target, body: null, signal },
      headers: { ...headers, ...conditions },
    }),
  );
  const status = response.statusCode ?? 502;
  if (status === 304 && stale) {
    const object = renewed(state, wanted, stale, response);
    if (object) return { kind: 'renewed', object };
    return request(state, wanted, null, fetch);
  }
  fetch.tags = tagsOf(response.headers);
  fetch.hasHead = true;
  const decision = decide(
    { key, request: headers as IncomingHttpHeaders, status, response: response.headers },
    zone.spec.cache,
  );
  const isLarge = Number(response.headers['content-length'] ?? 0) > state.objectBytesMax;
  const fits = !isLarge && fetch.tags.length <= TAGS_MAX;
  if (!decision.isStorable || !isEndKnown(response) || fetch.isCancelled || !fits) {
    if (!fetch.isCancelled && !decision.isPersonal) markPassed(state, wanted);
    return { kind: 'passed', response };
  }
  return store(state, wanted, response, decision, fetch);
}

/** Null where the response has come to depend on other fields of requests: it is asked for anew. */
function renewed(
  state: EmbeddedState,
  { zone, key, headers }: ObjectRequest,
  stale: StoredObject,
  response: IncomingMessage,
): StoredObject | null {
  response.resume();
  const fields = renewedFields(response.headers);
  const merged = { ...stale.headers, ...fields } as IncomingHttpHeaders;
  const decision = decide(
    { key, request: headers as IncomingHttpHeaders, status: stale.status, response: merged },
    zone.spec.cache,
  );
  // The origin confirmed the body for this request; its other headers are not for a shared cache.
  if (!decision.isStorable) return stale;
  if (!decision.vary.every((name) => name in stale.vary)) {
    state.store.drop(stale);
    return null;
  }
  const { born_at, fresh_until, stale_while_revalidate, stale_if_error, is_strict } = decision;
  state.store.renew(stale, fields, { born_at, fresh_until, stale_while_revalidate, stale_if_error, is_strict });
  return stale;
}

async function store(
  state: EmbeddedState,
  wanted: ObjectRequest,
  response: IncomingMessage,
  decision: Decision,
  fetch: Fetch,
): Promise<Fetched> {
  const { zone, site, key, headers: requestHeaders } = wanted;
  const status = response.statusCode ?? 502;
  const headers = responseFields(response.headers);
  const vary = Object.fromEntries(decision.vary.map((name) => [name, String(requestHeaders[name] ?? '')]));
  const { born_at, fresh_until, stale_while_revalidate, stale_if_error, is_strict } = decision;
  const file = await state.store
    .create({
      ...{ zone_id: zone.id, site, key, status, headers, tags: fetch.tags, vary },
      ...{ born_at, fresh_until, stale_while_revalidate, stale_if_error, is_strict },
    })
    .catch((error: unknown) => state.edge.log('an object of the CDN could not be stored', error));
  // If the response cannot be stored, the visitor still gets it.
  if (!file) return { kind: 'passed', response };
  const size = response.headers['content-length'] === undefined ? null : Number(response.headers['content-length']);
  const flight = startFlight(response, file, {
    ...{ announced: size, sizeMax: state.objectBytesMax, isWhole: () => response.complete },
    onTooLarge() {
      markPassed(state, wanted);
      if (state.fetches.get(nameOf(wanted)) === fetch) state.fetches.delete(nameOf(wanted));
    },
  });
  fetch.flight = flight;
  if (fetch.isCancelled) flight.cancelStoring();
  return { kind: 'flight', status, headers: withoutCacheFields(headers), size, flight, vary, born_at };
}

/** Limits the time until the response head; the body may take longer. */
async function withinTime<T>(milliseconds: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), milliseconds);
  try {
    return await work(late.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Requests in the next PASSED_MS go to the origin one by one. */
function markPassed({ passed }: EmbeddedState, wanted: ObjectRequest): void {
  if (passed.size >= PASSED_MAX) passed.clear();
  passed.set(nameOf(wanted), Date.now() + PASSED_MS);
}

export function isPassed({ passed }: EmbeddedState, wanted: ObjectRequest): boolean {
  return (passed.get(nameOf(wanted)) ?? 0) > Date.now();
}

function nameOf({ zone, site, key }: ObjectRequest): string {
  return `${zone.id} ${site} ${key}`;
}
