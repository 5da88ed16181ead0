// The embedded S3 endpoint of this host: its view of the database, its counters, and the sweep of its files.
import type { IncomingMessage } from 'node:http';
import { limits } from '../../../core/limits';
import { serviceSocket } from '../../../core/platform_names';
import { visitorOf } from '../../../core/process/ingress_connections';
import { repeatWork } from '../../../core/process/background';
import { endOfPrefix } from '../../../core/protocols/objects';
import type { ControlDatabase } from '../../../db/control_database';
import {
  openBlobStore,
  type BlobStore,
  type ObjectCatalog,
  type ServedBucket,
  type ServedKey,
  type S3Client,
  openEndpoint,
} from '../../../engines/object_storage';
import { ownerCredentials } from '../../../models/object_storage/bucket/presign';
import * as served from '../../../models/object_storage/bucket/served';
import * as objects from '../../../models/object_storage/bucket_object/catalog';
import { queryObjects } from '../../../models/object_storage/bucket_object/list';
import { clientAddress } from '../../platform/context';
import type { Platform } from '../../platform/platform';
import { openBucketRequests } from './bucket_requests';

/** Rights that were taken away end this much later at most; those of a changed access key at once. */
const CACHED_MS = 500;
const CACHE_MAX = 10_000;
const COUNT_EVERY_MS = 2_000;
const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const GARBAGE_AT_ONCE = 500;
const SWEEP_EVERY_MS = 1_000;
const ORPHANS_EVERY_MS = 3_600_000;
/** No request writes to a file for so long without a byte, so it has been given up. */
const ORPHAN_AGE_MS = 3_600_000;

type Parts = Pick<Platform, 'database' | 'log'>;

interface ObjectStorageAgent {
  port: number;
  close(): Promise<void>;
}

/** @returns null where object storage is off or a gateway serves it, or the port cannot be bound: the log says why */
export async function openObjectStorageAgent(parts: Platform): Promise<ObjectStorageAgent | null> {
  const { config, log } = parts;
  if (config.rgwUrl !== null) log.info({ url: config.rgwUrl }, 'an object gateway serves buckets');
  if (config.s3Port === 0 || config.rgwUrl !== null) return null;
  const blobs = openBlobStore(config.s3Dir, parts.secrets);
  const traffic = openTraffic(parts);
  const sweep = openSweep(parts, blobs);
  try {
    const endpoint = await openEndpoint({
      catalog: openCatalog(parts),
      blobs,
      addresses: config.s3Listen,
      port: config.s3Port,
      ingressSocket: serviceSocket(config, 's3'),
      clientOf: (request) => clientOf(request, config.trustProxy),
      connectionsPerAddress: config.trustProxy > 0 ? Infinity : limits.connectionsPerAddress,
      names: { domain: config.s3Domain, websiteDomain: config.s3WebsiteDomain },
      wakeSweep: () => sweep.wake(),
      count: (...counted) => traffic.count(...counted),
      log: (error, request_id) => log.error({ err: error, request_id }, 'a request to the S3 endpoint failed'),
    });
    log.info({ port: endpoint.port, addresses: config.s3Listen }, 'the S3 endpoint answers');
    return {
      port: endpoint.port,
      async close() {
        await endpoint.close(config.shutdownGraceSeconds * 1000);
        await sweep.stop();
        await traffic.stop();
      },
    };
  } catch (error) {
    await sweep.stop();
    await traffic.stop();
    log.error({ err: error, port: config.s3Port }, 'the S3 endpoint cannot listen; objects are not served');
    return null;
  }
}

/** As many entries from the right of the headers of proxies are believed as there are proxies. */
function clientOf(request: IncomingMessage, proxies: number): S3Client {
  const visitor = visitorOf(request);
  if (visitor) return { ...visitor, isLocal: false };
  const { 'x-forwarded-for': addresses, 'x-forwarded-proto': schemes } = request.headers;
  const chain = proxies ? String(schemes ?? '').split(',') : [];
  return {
    address: clientAddress(request, proxies),
    isSecure: chain[Math.max(0, chain.length - proxies)]?.trim().toLowerCase() === 'https',
    isLocal: addresses === undefined && schemes === undefined && LOOPBACK.test(request.socket.remoteAddress ?? ''),
  };
}

function openCatalog(platform: Platform): ObjectCatalog {
  const { config, secrets, database: sql } = platform;
  const writes = { sql, config };
  const requests = openBucketRequests(platform);
  const buckets = cached((name) => served.bucketByName(sql, name) as Promise<ServedBucket | null>);
  const keys = cached((id) => served.keyCredentials(sql, secrets, id) as Promise<ServedKey | null>);
  platform.identities.onForget(keys.clear);
  return {
    bucket: buckets,
    key: keys,
    ownerCredentials: remembered((bucketId) => ownerCredentials(secrets, bucketId)),
    bucketsOf: (projectId) => served.bucketsOfProject(sql, projectId) as Promise<ServedBucket[]>,
    principalsOf: (projectId) => served.principalsOf(sql, projectId),
    async createBucket(key, bucket) {
      await requests.createBucket(key, bucket);
      await buckets(bucket.name, 'fresh');
    },
    async deleteBucket(key, bucket, requestId) {
      await requests.deleteBucket(key, bucket, requestId);
      await buckets(bucket.name, 'fresh');
    },
    async changeBucket({ id, name }, change) {
      await served.changeBucket(sql, id, change as never);
      await buckets(name, 'fresh');
    },
    find: (bucketId, key, versionId) => objects.findObject(sql, bucketId, key, versionId),
    partsOf: (objectId) => objects.objectParts(sql, objectId),
    put: objects.objectWriter(writes),
    delete: (bucketId, deletions) => objects.deleteObjects(writes, bucketId, deletions),
    list: (question) => queryObjects(sql, question),
    setTags: (objectId, tags) => objects.setObjectTags(sql, objectId, tags),
    setPublic: (objectId, isPublic) => objects.setObjectPublic(sql, objectId, isPublic),
    setRetention: (bucketId, objectId, retention) => objects.setObjectRetention(sql, bucketId, objectId, retention),
    setHold: (bucketId, objectId, hold) => objects.setObjectHold(sql, bucketId, objectId, hold),
    createUpload: (bucketId, upload) => objects.createUpload(sql, bucketId, upload),
    upload: (bucketId, key, id) => objects.findUpload(sql, bucketId, key, id),
    listUploads: ({ bucketId, prefix, after, limit }) =>
      objects.listUploads(sql, {
        ...{ bucketId, prefix, end: endOfPrefix(prefix), limit },
        after: { key: after?.key ?? '', id: after?.position ?? '' },
      }),
    putPart: (bucketId, key, uploadId, part) => objects.putPart(writes, bucketId, uploadId, { ...part, key }),
    uploadParts: (uploadId) => objects.uploadParts(sql, uploadId),
    completeUpload: (bucketId, id, fileIds, object) => objects.completeUpload(writes, bucketId, id, fileIds, object),
    abortUpload: (bucketId, uploadId) => objects.abortUpload(sql, bucketId, uploadId),
  };
}

/** Of what never changes. */
function remembered<T>(derive: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    if (known.size >= CACHE_MAX) known.clear();
    const made = derive(name);
    known.set(name, made);
    return made;
  };
}

interface Lookup<T> {
  (name: string, fresh?: 'fresh'): Promise<T | null>;
  clear(): void;
}

/** Caches found values for a while; missing ones are read again each time. */
function cached<T>(read: (name: string) => Promise<T | null>): Lookup<T> {
  const known = new Map<string, { value: Promise<T | null>; until: number }>();
  const look = async (name: string, fresh?: 'fresh'): Promise<T | null> => {
    const found = known.get(name);
    if (!fresh && found && found.until > performance.now()) return found.value;
    if (known.size >= CACHE_MAX) known.clear();
    const entry = { value: read(name), until: performance.now() + CACHED_MS };
    known.set(name, entry);
    const value = await entry.value.catch((error: unknown) => {
      known.delete(name);
      throw error;
    });
    if (value === null && known.get(name) === entry) known.delete(name);
    return value;
  };
  return Object.assign(look, { clear: () => known.clear() });
}

interface Traffic {
  count(bucketId: string, egressBytes: number, accessKeyId: string | null): void;
  stop(): Promise<void>;
}

/** A killed process loses the traffic of the last seconds, and no object. */
function openTraffic({ database, log }: Parts): Traffic {
  let counted = new Map<string, { egress: number; requests: number }>();
  let used = new Set<string>();
  const store = async (): Promise<void> => {
    if (!counted.size) return;
    const [traffic, keys] = [counted, [...used]];
    [counted, used] = [new Map(), new Set()];
    await served.storeTraffic(database, traffic, keys);
  };
  const failure = 'the traffic of buckets could not be stored';
  const storing = repeatWork({ name: 'bucket_traffic', everyMs: COUNT_EVERY_MS, log, failure }, store);
  return {
    count(bucketId, egressBytes, accessKeyId) {
      const sums = counted.get(bucketId) ?? { egress: 0, requests: 0 };
      sums.egress += egressBytes;
      sums.requests += 1;
      counted.set(bucketId, sums);
      if (accessKeyId) used.add(accessKeyId);
    },
    stop: storing.finish,
  };
}

interface Sweep {
  wake(): void;
  stop(): Promise<void>;
}

/** Removes files that no object has any more, and now and then those that never got a row. */
function openSweep({ database, log }: Parts, blobs: BlobStore): Sweep {
  let isDue = true;
  let orphansAt = Date.now();
  const sweep = async (): Promise<void> => {
    if (isDue) isDue = (await removeGarbage(database, blobs)) === GARBAGE_AT_ONCE;
    if (Date.now() < orphansAt) return;
    orphansAt = Date.now() + ORPHANS_EVERY_MS;
    isDue = true;
    const removed = await removeOrphans(database, blobs, ORPHAN_AGE_MS);
    if (removed) log.warn({ files: removed }, 'files of uploads that were never finished were removed');
  };
  const failure = 'files of objects could not be removed';
  const { stop } = repeatWork({ name: 'object_garbage', everyMs: SWEEP_EVERY_MS, log, failure }, sweep);
  return { wake: () => void (isDue = true), stop };
}

async function removeGarbage(database: ControlDatabase, blobs: BlobStore): Promise<number> {
  const found = await served.garbage(database, GARBAGE_AT_ONCE);
  for (const { bucket_id, file_id } of found) await blobs.remove(bucket_id, file_id);
  if (found.length)
    await served.forgetGarbage(
      database,
      found.map(({ file_id }) => file_id),
    );
  return found.length;
}

/** @returns how many files had no row */
export async function removeOrphans(database: ControlDatabase, blobs: BlobStore, ageMs: number): Promise<number> {
  let removed = 0;
  for await (const batch of blobs.idle(ageMs)) {
    const orphans = new Set(
      await served.filesWithoutRow(
        database,
        batch.map(({ fileId }) => fileId),
      ),
    );
    for (const { bucketId, fileId } of batch.filter((file) => orphans.has(file.fileId))) {
      await blobs.remove(bucketId, fileId);
      removed += 1;
    }
  }
  return removed;
}
