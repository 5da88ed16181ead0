// A GET or HEAD of a visitor: from the objects of this host where they are fresh, else from the origin.
import { Transform, type Readable } from 'node:stream';
import { withoutCacheFields } from '../edge/headers';
import { mayServeStale, staleSeconds } from '../edge/policy';
import {
  countHit,
  ORIGIN_FAILED,
  passThrough,
  sendPassed,
  sendText,
  visitorFields,
  objectRequestOf,
  type Visit,
  type ObjectRequest,
} from '../edge/visit';
import { fetchObject, isPassed, type Fetched } from './fetch_object';
import { sendBody, storedBody } from './reply';
import type { EmbeddedState } from './state';
import type { StoredObject } from './store';

export async function serveCached(state: EmbeddedState, visit: Visit): Promise<void> {
  const wanted = objectRequestOf(visit);
  const object = state.store.find(wanted.zone.id, wanted, wanted.headers);
  if (object && staleSeconds(object) < 0) return sendStored(visit, object, 'hit');
  if (object && staleSeconds(object) <= object.stale_while_revalidate) {
    const { fetched } = fetchObject(state, wanted, object);
    void fetched.then((end) => end.kind === 'passed' && end.response.destroy());
    return sendStored(visit, object, 'hit; detail=stale');
  }
  if (!object && isPassed(state, wanted)) return passThrough(visit);
  const { fetched, isLeader } = fetchObject(state, wanted, object);
  return answer(visit, wanted, object, await fetched, isLeader);
}

async function answer(
  visit: Visit,
  wanted: ObjectRequest,
  stale: StoredObject | null,
  fetched: Fetched,
  isLeader: boolean,
): Promise<void> {
  const isFailure =
    fetched.kind === 'failed' || (fetched.kind === 'passed' && (fetched.response.statusCode ?? 0) >= 500);
  if (isFailure && stale && mayServeStale(stale, visit.zone.spec.cache)) {
    if (fetched.kind === 'passed' && isLeader) fetched.response.destroy();
    return sendStored(visit, stale, 'hit; detail=stale');
  }
  if (fetched.kind === 'renewed') return sendStored(visit, fetched.object, 'hit; fwd=stale; fwd-status=304');
  if (fetched.kind === 'failed') return sendText(visit.response, 502, ORIGIN_FAILED);
  // What is not kept, or depends on who asked, is for the one who asked.
  if (fetched.kind === 'passed') return isLeader ? sendPassed(visit, fetched.response) : passThrough(visit);
  const isSame = Object.entries(fetched.vary).every(([name, value]) => String(wanted.headers[name] ?? '') === value);
  if (!isSame) return passThrough(visit);
  const status = isLeader ? `fwd=${stale ? 'stale' : 'uri-miss'}; stored` : 'fwd=uri-miss; collapsed';
  const { flight, size } = fetched;
  sendBody(
    visit.request,
    visit.response,
    {
      ...{ status: fetched.status, size, headers: visitorFields(visit, fetched.headers, status, 0) },
      open: (range) => (range ? slice(flight.read(), range) : flight.read()),
    },
    { compresses: visit.zone.spec.compression },
  );
}

function sendStored(visit: Visit, object: StoredObject, status: string): void {
  countHit(visit);
  const age = (Date.now() - object.born_at) / 1000;
  const headers = visitorFields(visit, withoutCacheFields(object.headers), status, age);
  sendBody(visit.request, visit.response, storedBody(object, headers), {
    compresses: visit.zone.spec.compression,
  });
}

function slice(source: Readable, { start, end }: { start: number; end: number }): Readable {
  let position = 0;
  const cut = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const from = Math.max(0, start - position);
      const to = Math.min(chunk.length, end + 1 - position);
      position += chunk.length;
      done(null, to > from ? chunk.subarray(from, to) : undefined);
      if (position > end) {
        cut.end();
        source.destroy();
      }
    },
  });
  source.on('error', (error) => cut.destroy(error));
  source.pipe(cut);
  return cut;
}
