// GET or HEAD of a visitor: served from the objects of this host where they are fresh, else from the origin.
import { open, type FileHandle } from 'node:fs/promises';
import { withoutCacheFields } from '../edge/headers';
import { mayServeStale, staleSeconds } from '../edge/policy';
import {
  countHit,
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
import { formSourceOf } from './forms';
import { replyTo, sendBuffer, sendReplyHead, sendStream, type Reply } from './reply';
import type { EmbeddedState } from './state';
import type { Coding, StoredObject } from './stored_object';

const READ_BYTES = 256 * 1024;
const AT_ONCE_BYTES = 16 * 1024;

/** Synchronous where the object is in memory. */
export function serveCached(state: EmbeddedState, visit: Visit): Promise<void> | void {
  const { zone, target: key } = visit;
  const address = { site: siteOf(visit), key };
  const object = state.store.find(zone.id, address, fieldsOf(visit));
  if (object && staleSeconds(object) < 0) return sendStored(state, visit, object, 'hit');
  return serveFetched(state, visit, object);
}

/** Most objects depend on Origin alone, which goes to origins as it comes. */
function fieldsOf(visit: Visit): (header: string) => unknown {
  let wanted: Record<string, unknown> | null = null;
  return (header) =>
    header === 'origin' ? visit.request.headers.origin : (wanted ??= objectRequestOf(visit).headers)[header];
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
  // A response that is not stored, or varies with the request, is for the leading request only.
  if (fetched.kind === 'passed') return isLeader ? sendPassed(visit, fetched.response) : passThrough(visit);
  const isSame = Object.entries(fetched.vary).every(([name, value]) => String(wanted.headers[name] ?? '') === value);
  if (!isSame) return passThrough(visit);
  const status = isLeader ? `fwd=${stale ? 'stale' : 'uri-miss'}; stored` : 'fwd=uri-miss; collapsed';
  const { flight, size } = fetched;
  const headers = visitorFields(visit, fetched.headers, status, ageOf(fetched));
  const reply = replyTo(visit.request, { status: fetched.status, size, headers }, visit.zone.spec.compression);
  if (!reply.hasBody) return sendReplyHead(visit.response, reply);
  const { id, stored } = flight;
  const source = reply.coding ? state.store.form({ id, size, stored, read: flight.read }, reply.coding) : flight;
  if (size === null || size > AT_ONCE_BYTES) return sendStream(visit.response, reply, source.read(reply.range), null);
  // With many waiting visitors, a stream for each would take more memory than the body.
  const content = await source.whole().catch(() => null);
  if (!content) return sendRefusal(visit.response, 502, ORIGIN_FAILED);
  if (!visit.response.destroyed) sendBuffer(visit.response, reply, content);
}

function sendStored(state: EmbeddedState, visit: Visit, object: StoredObject, status: string): Promise<void> | void {
  const { request, response, zone } = visit;
  const headers = visitorFields(visit, withoutCacheFields(object.headers), status, ageOf(object));
  const { size } = object;
  const reply = replyTo(request, { status: object.status, size, headers }, zone.spec.compression);
  const bytes = reply.coding ? object.forms[reply.coding] : object;
  const content = bytes && state.store.memory.find(bytes);
  if (!content && reply.hasBody) return sendFromFile(state, visit, object, reply, bytes);
  countHit(visit);
  if (content) return sendBuffer(response, reply, content);
  sendReplyHead(response, reply);
}

/** Age in seconds. */
function ageOf({ born_at }: Pick<StoredObject, 'born_at'>): number {
  return (Date.now() - born_at) / 1000;
}

/** @param bytes absent: the form that the visitor accepts is not made yet */
async function sendFromFile(
  state: EmbeddedState,
  visit: Visit,
  object: StoredObject,
  reply: Reply,
  bytes?: StoredBytes,
): Promise<void> {
  const { memory } = state.store;
  const isSmall = bytes !== undefined && memory.fits(bytes);
  // A damaged file is a miss.
  const found = await (isSmall ? memory.load(bytes) : openWhole(bytes ?? object)).catch(() => null);
  const handle = Buffer.isBuffer(found) ? null : found;
  if (visit.response.destroyed) return void handle?.close();
  if (!found) {
    state.store.drop(object);
    return serveFetched(state, visit, null);
  }
  countHit(visit);
  if (Buffer.isBuffer(found)) return sendBuffer(visit.response, reply, found);
  if (!bytes) {
    void found.close();
    return sendForm(state, visit, object, reply);
  }
  const { start, end } = reply.range ?? { start: 0, end: bytes.size - 1 };
  const body = found.createReadStream({
    ...{ start: bytes.start + start, end: bytes.start + end, highWaterMark: READ_BYTES },
  });
  sendStream(visit.response, reply, body, bytes.size);
}

/** While the form is being made, concurrent requests read it as it grows. */
function sendForm(state: EmbeddedState, { response }: Visit, object: StoredObject, reply: Reply): void {
  const form = state.store.form(formSourceOf(object), reply.coding as Coding);
  sendStream(response, reply, form.read(), null);
}

/** @throws Error where the file was removed or truncated */
async function openWhole({ file, start, size }: StoredBytes): Promise<FileHandle> {
  const handle = await open(file, 'r');
  if ((await handle.stat()).size === start + size) return handle;
  await handle.close();
  throw new Error('the file is damaged');
}
