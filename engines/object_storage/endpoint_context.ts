// Context of the handlers of the endpoint.
import { isAllowed, permissionIn } from '../../core/protocols/buckets/bucket_access';
import { conditionContext } from './condition_context';
import type { BucketAction } from '../../core/protocols/buckets/bucket_actions';
import type { BlobStore } from './files/blobs';
import type { ObjectCatalog, ServedBucket } from './catalog';
import { S3Error } from './errors';
import { queryOf, type S3Request } from './request';
import type { Caller } from './signature';

export interface EndpointContext {
  catalog: ObjectCatalog;
  blobs: BlobStore;
  /** To be called when files may have become garbage. */
  wakeSweep(): void;
}

export interface Exchange extends EndpointContext {
  request: S3Request;
  caller: Caller;
  bucket: ServedBucket;
}

/** A request for an object. */
export interface ObjectExchange extends Exchange {
  key: string;
  /** From the query; `null` is the version that was written without versioning. */
  versionId: string | null;
  /** Error document of a website: sent in full, with the status 404. */
  isErrorDocument?: boolean;
}

/**
 * Requires that the caller has the permission. @param resource object key, or prefix of a list
 * @throws S3Error AccessDenied
 */
export function requireGranted(exchange: Exchange, action: BucketAction, resource: string, isPublic = false): void {
  if (!mayDo(exchange, action, resource, isPublic)) throw new S3Error('AccessDenied');
}

export function mayDo(
  { caller, bucket, request: received }: Pick<Exchange, 'caller' | 'bucket' | 'request'>,
  action: BucketAction,
  resource: string,
  isPublic = false,
): boolean {
  const isOfProject = caller.key?.projectId === bucket.project_id;
  const request = {
    action,
    resource,
    principal: caller.key?.accessKeyId ?? null,
    permission: caller.key && isOfProject ? permissionIn(caller.key.grants, bucket.id) : null,
    isOwner: caller.isOwner,
    isOfProject,
    context: conditionContext(received, action),
  };
  return isAllowed(bucket, request, isPublic);
}

export function hasQuery(request: S3Request, name: string): boolean {
  return queryOf(request, name) !== undefined;
}
