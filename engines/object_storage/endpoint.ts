// The S3 endpoint: handling of a request from its first byte to its last.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { mintRequestId } from '../../core/ids';
import { guardHttp } from '../../core/process/connection_gate';
import { closeServers } from '../../core/process/close_servers';
import { listenToIngress } from '../../core/process/ingress_connections';
import type { BlobStore } from './files/blobs';
import { bucketSettings } from './settings/bucket_settings';
import type { ObjectCatalog, ServedBucket } from './catalog';
import { corsHeaders, preflightHeaders } from './settings/cors';
import { createBucket, deleteBucket } from './bucket_requests';
import { deleteObject, deleteObjects } from './delete_object';
import { hasQuery, requireGranted, type Exchange, type ObjectExchange } from './endpoint_context';
import { S3Error, s3ErrorOf, type S3Code } from './errors';
import { listBuckets, listObjects, listVersions } from './lists';
import * as multipart from './multipart';
import { listParts, listUploads } from './multipart_lists';
import { getHold, getRetention, putHold, putRetention } from './settings/object_lock';
import { getAttributes } from './object_attributes';
import { postObject } from './post_form';
import { applyHoistedHeaders, requireHonoured, requireOverrides, requireOwner } from './operations';
import { readObject } from './read_object';
import { headerOf, parseRequest, type HostNames, type S3Client, type S3Request } from './request';
import { sendEmpty, sendError } from './respond';
import { authenticateRequest, type Caller } from './signature';
import { serveWebsite } from './settings/website';
import * as objects from './write_object';

const HEADER_BYTES_MAX = 32 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
/** Idle timeout of connections. */
const IDLE_MS = 60_000;
const TIMEOUT_CHECK_MS = 5_000;
interface EndpointOptions {
  catalog: ObjectCatalog;
  blobs: BlobStore;
  addresses: readonly string[];
  port: number;
  /** Path of the Unix socket for requests of the ingress; null: it sends none. */
  ingressSocket: string | null;
  names: HostNames;
  /** Who is behind trusted proxies. */
  clientOf(request: IncomingMessage): S3Client;
  wakeSweep(): void;
  connectionsPerAddress: number;
  /** Called after each request that named a bucket. */
  count(bucketId: string, egressBytes: number, accessKeyId: string | null): void;
  log(error: unknown, requestId: string): void;
}

interface Endpoint {
  port: number;
  close(graceMs: number): Promise<void>;
}

/** @throws Error with a code where the port can not be bound */
export async function openEndpoint(options: EndpointOptions): Promise<Endpoint> {
  const servers: Server[] = [];
  let { port } = options;
  for (const address of options.addresses) {
    const server = createServer({
      maxHeaderSize: HEADER_BYTES_MAX,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      noDelay: true,
    });
    Object.assign(server, {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      timeout: IDLE_MS,
    });
    guardHttp(server, { perAddress: options.connectionsPerAddress });
    server.on('request', (request, response) => void handle(options, request, response));
    server.on(
      'checkContinue',
      (request: IncomingMessage, response: ServerResponse) => void handle(options, request, response),
    );
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, address, resolve);
    });
    port = (server.address() as { port: number }).port;
    servers.push(server);
  }
  const [first] = servers;
  const { ingressSocket } = options;
  const ofIngress = first && ingressSocket !== null ? [await listenToIngress(first, ingressSocket)] : [];
  return { port, close: (graceMs) => closeServers(servers, ofIngress, graceMs) };
}

async function handle(options: EndpointOptions, raw: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = mintRequestId();
  response.setHeader('x-amz-request-id', id);
  response.setHeader('x-content-type-options', 'nosniff');
  response.on('error', () => undefined);
  const seen: Seen = {
    request: {
      raw,
      response,
      id,
      method: raw.method ?? 'GET',
      bucket: null,
      key: null,
      path: raw.url ?? '/',
      query: [],
      isWebsite: false,
      client: options.clientOf(raw),
    },
    bucket: null,
    caller: null,
  };
  let egress = 0;
  try {
    seen.request = { ...seen.request, ...parseRequest(raw, options.names) };
    egress = (await respond(options, seen)) ?? 0;
  } catch (error) {
    const known = s3ErrorOf(error);
    if (known.unknown) options.log(error, id);
    sendError(seen.request, known.error);
  } finally {
    if (seen.bucket) options.count(seen.bucket.id, egress, seen.caller?.key?.accessKeyId ?? null);
  }
}

interface Seen {
  request: S3Request;
  bucket: ServedBucket | null;
  caller: Caller | null;
}

async function respond(options: EndpointOptions, seen: Seen): Promise<number | void> {
  const { catalog, blobs, wakeSweep } = options;
  const { request } = seen;
  const named =
    request.bucket === null
      ? null
      : ((await catalog.bucket(request.bucket, isOfSettings(request))) ??
        (await catalog.bucket(request.bucket, 'fresh')));
  seen.bucket = named;
  if (request.method === 'OPTIONS') return preflight(named, request);
  if (named)
    for (const [name, value] of Object.entries(corsHeaders(named, request))) request.response.setHeader(name, value);
  const isForm =
    request.method === 'POST' &&
    request.key === null &&
    /^multipart\/form-data/i.test(headerOf(request, 'content-type') ?? '');
  const caller = await authenticateRequest(request, catalog, named);
  seen.caller = caller;
  applyHoistedHeaders(request);
  const context = { catalog, blobs, wakeSweep, request, caller };
  if (request.bucket === null) {
    requireHonoured(request, 'service', '');
    return listBuckets(context);
  }
  if (isCreation(request)) {
    requireHonoured(request, 'bucket', '');
    return createBucket(context, (await catalog.bucket(request.bucket, 'fresh')) ?? null);
  }
  if (!named) throw noSuchBucket(seen);
  const run = async (bucket: ServedBucket): Promise<number | void> => {
    const exchange = { ...context, bucket };
    if (request.isWebsite) return serveWebsite(exchange);
    requireOwner(request, bucket, 'x-amz-expected-bucket-owner');
    if (isForm) return postObject(exchange);
    return request.key === null
      ? ofBucket(exchange)
      : ofObject({ ...exchange, key: request.key, versionId: objects.versionOf(exchange) });
  };
  return retried(options, seen, run);
}

/** Requests for the bucket itself and its settings bypass the cache, to see changes just made through the API. */
function isOfSettings(request: S3Request): 'fresh' | undefined {
  const isOne =
    request.method === 'HEAD' ||
    request.method === 'DELETE' ||
    Object.keys(bucketSettings).some((one) => hasQuery(request, one));
  return request.key === null && isOne ? 'fresh' : undefined;
}

/** Anonymous callers cannot probe for bucket names. */
function noSuchBucket({ caller, request }: Seen): S3Error {
  return new S3Error(caller?.key || caller?.isOwner || request.isWebsite ? 'NoSuchBucket' : 'AccessDenied');
}

/** Errors that may mean that the bucket was deleted. */
const MISSING: readonly S3Code[] = ['NoSuchKey', 'NoSuchVersion', 'NoSuchUpload'];
/** Errors that are retried with fresh rows, so that a new grant or setting works at once. */
const STALE: readonly S3Code[] = [...MISSING, 'AccessDenied', 'InvalidRequest'];

async function retried(
  options: EndpointOptions,
  seen: Seen,
  run: (bucket: ServedBucket) => Promise<number | void>,
): Promise<number | void> {
  const bucket = seen.bucket as ServedBucket;
  try {
    return await run(bucket);
  } catch (error) {
    const { code } = s3ErrorOf(error).error;
    if (!STALE.includes(code) || seen.request.response.headersSent) throw error;
    const { caller } = seen;
    const fresh = await options.catalog.bucket(bucket.name, 'fresh');
    if (fresh?.id !== bucket.id && MISSING.includes(code)) throw noSuchBucket(seen);
    if (MISSING.includes(code) || seen.request.raw.readableDidRead) throw error;
    if (caller?.key) Object.assign(caller.key, await options.catalog.key(caller.key.accessKeyId, 'fresh'));
    if (!fresh) throw error;
    return run(fresh);
  }
}

function preflight(bucket: ServedBucket | null, request: S3Request): void {
  if (!bucket) throw new S3Error('AccessDenied', 'No CORS rule of the bucket allows this request.');
  sendEmpty({ request }, 200, preflightHeaders(bucket, request));
}

function refuseMethod(): never {
  throw new S3Error('MethodNotAllowed');
}

/** PUT of the bucket itself, also with parameters that have no meaning, such as `x-id` of the SDKs. */
function isCreation({ method, key, isWebsite, query }: S3Request): boolean {
  return method === 'PUT' && key === null && !isWebsite && !query.some(([name]) => Object.hasOwn(bucketSettings, name));
}

async function ofBucket(exchange: Exchange): Promise<void> {
  const { request } = exchange;
  const sub = subResource(request, [...Object.keys(bucketSettings), 'delete', 'uploads', 'versions']);
  requireHonoured(request, 'bucket', sub);
  const setting = bucketSettings[sub];
  if (setting) return (setting[request.method] ?? refuseMethod)(exchange);
  if (request.method === 'POST') return deleteObjects(exchange);
  if (request.method === 'DELETE') return deleteBucket(exchange);
  if (request.method === 'HEAD') return headBucket(exchange);
  if (request.method !== 'GET') return refuseMethod();
  if (sub === 'uploads') return listUploads(exchange);
  return sub === 'versions' ? listVersions(exchange) : listObjects(exchange);
}

/** The query parameter that selects the operation; '' for the bucket or object itself. */
function subResource(request: S3Request, names: readonly string[]): string {
  return names.find((one) => one && hasQuery(request, one)) ?? '';
}

function headBucket(exchange: Exchange): void {
  requireGranted(exchange, 's3:ListBucket', '');
  sendEmpty(exchange, 200, { 'x-amz-bucket-region': exchange.bucket.region });
}

type ObjectHandler = (exchange: ObjectExchange) => Promise<number | void>;

/** By the selecting query parameter and the method; '' is the object itself. */
const OBJECT_HANDLERS: Record<string, Partial<Record<string, ObjectHandler>>> = {
  uploads: { POST: multipart.createUpload },
  uploadId: {
    GET: listParts,
    PUT: (exchange) => (objects.hasCopySource(exchange) ? multipart.copyPart(exchange) : multipart.putPart(exchange)),
    POST: multipart.completeUpload,
    DELETE: multipart.abortUpload,
  },
  tagging: {
    GET: objects.getTags,
    PUT: (exchange) => objects.setTags(exchange, 'given'),
    DELETE: (exchange) => objects.setTags(exchange, null),
  },
  acl: { GET: objects.getAcl, PUT: objects.setAcl },
  attributes: { GET: getAttributes },
  retention: { GET: getRetention, PUT: putRetention },
  'legal-hold': { GET: getHold, PUT: putHold },
  '': {
    GET: readObject,
    HEAD: readObject,
    PUT: (exchange) => (objects.hasCopySource(exchange) ? objects.copyObject(exchange) : objects.putObject(exchange)),
    DELETE: deleteObject,
  },
};

async function ofObject(exchange: ObjectExchange): Promise<number | void> {
  const { request, caller } = exchange;
  const sub = subResource(request, Object.keys(OBJECT_HANDLERS));
  requireHonoured(request, 'object', sub);
  if (sub === '') requireOverrides(request, caller.key !== null || caller.isOwner);
  return (OBJECT_HANDLERS[sub]?.[request.method] ?? refuseMethod)(exchange);
}
