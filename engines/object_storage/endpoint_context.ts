// Context of the handlers of the endpoint.
import { isAllowed, permissionIn } from '../../core/protocols/buckets/bucket_access';
import { type BucketAction, isListAction } from '../../core/protocols/buckets/bucket_actions';
import type { BlobStore } from './files/blobs';
import type { ObjectCatalog, ServedBucket } from './catalog';
import { S3Error } from './errors';
import { queryOf, type S3Request, headerOf } from './request';
import type { Caller } from './signature';
import { plainAddress, type ConditionContext } from '../../core/protocols/buckets/policy_conditions';

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

/** What a request gives for the keys of conditions. */
function conditionContext(request: S3Request, action: BucketAction): ConditionContext {
  return (key) => {
    switch (key) {
      case 'aws:sourceip':
        return plainAddress(request.client.address);
      case 'aws:securetransport':
        return String(request.client.isSecure);
      case 'aws:referer':
        return headerOf(request, 'referer');
      case 'aws:useragent':
        return headerOf(request, 'user-agent');
      case 's3:prefix':
      case 's3:delimiter':
        return isListAction(action) ? queryOf(request, key.slice('s3:'.length)) : undefined;
      default:
        return headerOf(request, key.slice('s3:'.length)) ?? ofUpload(request, key);
    }
  };
}

/** Parts and completions have what their upload was created with, as at Amazon S3. */
function ofUpload({ upload }: S3Request, key: string): string | undefined {
  switch (key) {
    case 's3:x-amz-acl':
      return upload?.acl;
    case 's3:x-amz-server-side-encryption':
      return upload?.metadata.encryption ?? undefined;
    default:
      return upload?.metadata.customer_key ? 'AES256' : undefined;
  }
}
