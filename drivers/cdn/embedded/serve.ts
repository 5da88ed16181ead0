// A GET or HEAD of a visitor: from the objects of this host where they are fresh, else from the origin.
import { open, type FileHandle } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import { withoutCacheFields } from '../edge/headers';
import { mayServeStale, staleSeconds } from '../edge/policy';
import {
  countHit,
  keyOf,
  ORIGIN_FAILED,
  passThrough,
  sendPassed,
  sendRefusal,
  siteOf,
  visitorFields,
  objectRequestOf,
  type Visit,
  type ObjectRequest,
} from '../edge/visit';
import { fetchObject, isPassed, type Fetched } from './fetch_object';
import type { StoredBytes } from './memory';
import { replyTo, sendBuffer, sendReplyHead, sendPacked, sendStream, type Reply } from './reply';
import type { EmbeddedState } from './state';
import type { StoredObject } from './store';

const READ_BYTES = 256 * 1024;

/** No promise where the object is in memory. */
export function serveCached(state: EmbeddedState, visit: Visit): Promise<void> | void {
  const { zone, request } = visit;
  const address = { site: siteOf(visit), key: keyOf(zone, request.url ?? '/') };
  const object = state.store.find(zone.id, address, () => objectRequestOf(visit).headers);
  if (object && staleSeconds(object) < 0) return sendStored(state, visit, object, 'hit');
  return serveFetched(state, visit, object);
}

async function serveFetched(state: EmbeddedState, visit: Visit, object: StoredObject | null): Promise<void> {
  const wanted = objectRequestOf(visit);
  if (object && staleSeconds(object) <= object.stale_while_revalidate) {
    const { fetched } = fetchObject(state, wanted, object);
    void fetched.then((end) => end.kind === 'passed' && end.response.destroy());
    return sendStored(state, visit, object, 'hit; detail=stale');
  }
  if (!object && isPassed(state, wanted)) return passThrough(visit);
  const { fetched, isLeader } = fetchObject(state, wanted, object);
  return answer(state, visit, wanted, object, await fetched, isLeader);
}

async function answer(
  state: EmbeddedState,
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
    return sendStored(state, visit, stale, 'hit; detail=stale');
  }
  if (fetched.kind === 'renewed') return sendStored(state, visit, fetched.object, 'hit; fwd=stale; fwd-status=304');
  if (fetched.kind === 'failed') return sendRefusal(visit.response, 502, ORIGIN_FAILED);
  // What is not kept, or depends on who asked, is for the one who asked.
  if (fetched.kind === 'passed') return isLeader ? sendPassed(visit, fetched.response) : passThrough(visit);
  const isSame = Object.entries(fetched.vary).every(([name, value]) => String(wanted.headers[name] ?? '') === value);
  if (!isSame) return passThrough(visit);
  const status = isLeader ? `fwd=${stale ? 'stale' : 'uri-miss'}; stored` : 'fwd=uri-miss; collapsed';
  const { flight, size } = fetched;
  const headers = visitorFields(visit, fetched.headers, status, 0);
  const reply = replyTo(visit.request, { status: fetched.status, size, headers }, visit.zone.spec.compression);
  if (!reply.hasBody) return sendReplyHead(visit.response, reply);
  sendPacked(visit.response, reply, reply.range ? slice(flight.read(), reply.range) : flight.read());
}

function sendStored(state: EmbeddedState, visit: Visit, object: StoredObject, status: string): Promise<void> | void {
  const { request, response, zone } = visit;
  const age = (Date.now() - object.born_at) / 1000;
  const headers = visitorFields(visit, withoutCacheFields(object.headers), status, age);
  const { size } = object;
  const reply = replyTo(request, { status: object.status, size, headers }, zone.spec.compression);
  const bytes = reply.coding ? state.store.form(object, reply.coding) : object;
  const content = bytes && state.store.memory.find(bytes);
  if (!content && reply.hasBody) return sendFromFile(state, visit, object, reply, bytes);
  countHit(visit);
  if (content) return sendBuffer(response, reply, content);
  sendReplyHead(response, reply);
}

/** @param bytes null: the form that the visitor reads is not made yet */
async function sendFromFile(
  state: EmbeddedState,
  visit: Visit,
  object: StoredObject,
  reply: Reply,
  bytes: StoredBytes | null,
): Promise<void> {
  const { memory } = state.store;
  const read = bytes ?? object;
  // A damaged file is a miss.
  const damaged = (): null => (state.store.drop(object), null);
  const content = memory.fits(read) ? await memory.load(read).catch(damaged) : undefined;
  const handle = content === undefined ? await open(read.file, 'r').catch(damaged) : null;
  if (visit.response.destroyed) return void handle?.close();
  if (!content && !handle) return serveFetched(state, visit, null);
  countHit(visit);
  if (content && bytes) return sendBuffer(visit.response, reply, content);
  if (content) return sendPacked(visit.response, reply, Readable.from([content]));
  const { start, end } = reply.range ?? { start: 0, end: read.size - 1 };
  const body = (handle as FileHandle).createReadStream({
    ...{ start: read.start + start, end: read.start + end, highWaterMark: READ_BYTES },
  });
  if (bytes) return sendStream(visit.response, reply, body, bytes.size);
  sendPacked(visit.response, reply, body);
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
