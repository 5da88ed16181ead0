// CreateBucket and DeleteBucket, by access keys that may.
import { mayCreateBuckets, permissionIn } from '../../core/protocols/buckets/bucket_access';
import type { ServedBucket } from './catalog';
import { requireGranted, type EndpointContext, type Exchange } from './endpoint_context';
import { S3Error } from './errors';
import { headerOf, type S3Request } from './request';
import { sendEmpty } from './respond';
import { accessOfHeaders } from './settings/acl';
import { NEW_BUCKET_BLOCK, ownershipOf } from './settings/public_access';
import type { Caller } from './signature';
import { receiveText } from './upload';
import { elementText, parseXml, requireMembers } from './xml';

type Context = EndpointContext & { request: S3Request; caller: Caller };

const XML_BYTES_MAX = 64 * 1024;
/** As the API names buckets: a dot would be no label of a host name with a certificate. */
const NAME = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/;

/** @param found the bucket that has the name already */
export async function createBucket(context: Context, found: ServedBucket | null): Promise<void> {
  const { request, catalog, caller } = context;
  const { key } = caller;
  const name = request.bucket as string;
  const isOwn = found !== null && found.project_id === key?.projectId;
  if (isOwn && permissionIn(key.grants, found.id)) throw new S3Error('BucketAlreadyOwnedByYou');
  if (!key || !mayCreateBuckets(key.grants))
    throw new S3Error(
      'AccessDenied',
      'Buckets are created by access keys with the permission full for every bucket of the project, or with the API.',
    );
  if (isOwn) throw new S3Error('BucketAlreadyOwnedByYou');
  if (found) throw new S3Error('BucketAlreadyExists');
  if (!NAME.test(name)) throw new S3Error('InvalidBucketName');
  await catalog.createBucket(key, {
    ...{ name, region: await regionOf(context), ...accessOf(request, key.projectId) },
    object_lock: isTrue(request, 'x-amz-bucket-object-lock-enabled'),
    request_id: request.id,
  });
  sendEmpty(context, 200, { location: `/${name}` });
}

/** The region in the body; null without one. */
async function regionOf(context: Context): Promise<string | null> {
  const text = headerOf(context.request, 'content-length') === undefined ? '' : await bodyOf(context);
  if (!text.trim()) return null;
  const document = parseXml(text, 'CreateBucketConfiguration');
  requireMembers(document, ['LocationConstraint']);
  return elementText(document, 'LocationConstraint')?.trim() || null;
}

function bodyOf(context: Context): Promise<string> {
  if (headerOf(context.request, 'expect') === '100-continue') context.request.response.writeContinue();
  return receiveText(context, XML_BYTES_MAX);
}

/** As at Amazon S3, a new bucket is blocked for the public and has no ACLs, unless the request asks for them. */
function accessOf(request: S3Request, project_id: string) {
  const ownership = headerOf(request, 'x-amz-object-ownership');
  const object_ownership = ownership === undefined ? ('BucketOwnerEnforced' as const) : ownershipOf(ownership);
  const access = accessOfHeaders(request, { project_id, object_ownership: null, public_access_block: null });
  if (access === 'public_read')
    throw new S3Error(
      object_ownership === 'BucketOwnerEnforced'
        ? 'InvalidBucketAclWithObjectOwnership'
        : 'InvalidBucketAclWithBlockPublicAccessError',
    );
  return { object_ownership, public_access_block: NEW_BUCKET_BLOCK };
}

/** @throws S3Error InvalidArgument */
function isTrue(request: S3Request, header: string): boolean {
  const value = headerOf(request, header)?.toLowerCase() ?? 'false';
  if (value !== 'true' && value !== 'false') throw new S3Error('InvalidArgument', `${header} must be true or false.`);
  return value === 'true';
}

/** DeleteBucket. */
export async function deleteBucket(exchange: Exchange): Promise<void> {
  const { request, caller, bucket, catalog } = exchange;
  requireGranted(exchange, 's3:DeleteBucket', '');
  // The activity of the project names who did it, so that nobody without a key deletes a bucket.
  if (caller.key?.projectId !== bucket.project_id) throw new S3Error('AccessDenied');
  await catalog.deleteBucket(caller.key, bucket, request.id);
  exchange.wakeSweep();
  sendEmpty(exchange, 204);
}
