// ACLs. Two of them mean something here: the owner alone, and everybody may read. They come as canned ACL, as grants in
// headers, or as a document; everything else is refused.
import type { BucketRules } from '../../../core/protocols/buckets/bucket_access';
import type { ServedBucket } from '../catalog';
import type { Exchange } from '../endpoint_context';
import { S3Error } from '../errors';
import { headerOf, type S3Request } from '../request';
import { receiveText } from '../upload';
import { childElement, childElements, elementText, parseXml, requireMembers, type XmlElements } from '../xml';

type Access = 'private' | 'public_read';
type Owning = Pick<ServedBucket, 'project_id' | 'public_access_block' | 'object_ownership'>;

const XML_BYTES_MAX = 64 * 1024;
const EVERYBODY = 'http://acs.amazonaws.com/groups/global/AllUsers';
/** The owner of a bucket owns its objects, so that two of them are the same as `private`. */
const CANNED: ReadonlyMap<string, Access> = new Map([
  ['private', 'private'],
  ['bucket-owner-full-control', 'private'],
  ['bucket-owner-read', 'private'],
  ['public-read', 'public_read'],
]);
const OTHERS: readonly string[] = ['public-read-write', 'authenticated-read', 'aws-exec-read', 'log-delivery-write'];
/** Of those. */
const PUBLIC: readonly string[] = ['public-read-write', 'authenticated-read'];
const GROUPS = /^http:\/\/acs\.amazonaws\.com\/groups\/global\/(AllUsers|AuthenticatedUsers)$/;
const GRANT = 'x-amz-grant-';
const PERMISSIONS: Record<string, string> = {
  ...{ 'full-control': 'FULL_CONTROL', read: 'READ', write: 'WRITE', 'read-acp': 'READ_ACP', 'write-acp': 'WRITE_ACP' },
};
/** Headers that grant something. */
export const GRANT_HEADERS = Object.keys(PERMISSIONS).map((name) => GRANT + name);

/**
 * The access that the headers of a request ask for; null without such headers.
 * @throws S3Error NotImplemented, InvalidArgument, InvalidRequest; AccessControlListNotSupported and AccessDenied where
 * the bucket takes no such ACL
 */
export function accessOfHeaders(request: S3Request, bucket: Owning): Access | null {
  const canned = headerOf(request, 'x-amz-acl');
  const grants = GRANT_HEADERS.filter((name) => headerOf(request, name) !== undefined);
  if (canned !== undefined && grants.length)
    throw new S3Error('InvalidRequest', 'A canned ACL and grants in headers cannot be sent together.');
  if (canned !== undefined) return cannedAccess(canned, bucket);
  if (!grants.length) return null;
  return grantedAccess(
    grants.flatMap((name) => {
      const permission = PERMISSIONS[name.slice(GRANT.length)] as string;
      return granteesOf(headerOf(request, name) ?? '').map((grantee) => ({ ...grantee, permission }));
    }),
    bucket,
  );
}

/** @throws as accessOfHeaders */
export function cannedAccess(name: string, bucket: Owning): Access {
  const access = CANNED.get(name);
  if (access) return permitted(access, bucket);
  if (!OTHERS.includes(name)) throw new S3Error('InvalidArgument', 'x-amz-acl is not the name of a canned ACL.');
  if (PUBLIC.includes(name)) requireNotBlocked(bucket);
  throw notHonoured(bucket, `The canned ACLs are ${[...CANNED.keys()].join(', ')}.`);
}

/** The access that PutBucketAcl or PutObjectAcl asks for, in headers or in a document. @throws as accessOfHeaders */
export async function receivedAccess(exchange: Exchange): Promise<Access> {
  const { request, bucket } = exchange;
  const access = accessOfHeaders(request, bucket);
  const hasBody =
    Number(headerOf(request, 'content-length') ?? 0) > 0 || headerOf(request, 'transfer-encoding') !== undefined;
  if (access === null) return accessOfDocument(await receiveText(exchange, XML_BYTES_MAX), bucket);
  if (hasBody) throw new S3Error('InvalidRequest', 'An ACL in headers and one in the body cannot be sent together.');
  return access;
}

interface Grant {
  kind: string;
  grantee: string;
  permission: string;
}

function grantedAccess(grants: readonly Grant[], bucket: Owning): Access {
  const isOwners = ({ kind, grantee, permission }: Grant): boolean =>
    kind === 'id' && grantee === bucket.project_id && permission === 'FULL_CONTROL';
  const isPublic = ({ kind, grantee, permission }: Grant): boolean =>
    kind === 'uri' && grantee === EVERYBODY && permission === 'READ';
  const isHonoured = grants.some(isOwners) && grants.every((grant) => isOwners(grant) || isPublic(grant));
  if (isHonoured) return permitted(grants.some(isPublic) ? 'public_read' : 'private', bucket);
  if (grants.some(({ kind, grantee }) => kind === 'uri' && GROUPS.test(grantee))) requireNotBlocked(bucket);
  throw notHonoured(bucket, `An ACL grants FULL_CONTROL to the owner, and READ to everybody (${EVERYBODY}) or nobody.`);
}

/** `id="…", uri="…"` */
function granteesOf(header: string): Pick<Grant, 'kind' | 'grantee'>[] {
  return header.split(',').map((text) => {
    const [, kind, quoted, plain] = /^\s*(id|uri|emailAddress)=(?:"([^"]*)"|([^"\s]+))\s*$/i.exec(text) ?? [];
    if (!kind) throw new S3Error('InvalidArgument', 'A grantee must be given as id="…", uri="…" or emailAddress="…".');
    return { kind: kind.toLowerCase(), grantee: quoted ?? plain ?? '' };
  });
}

function accessOfDocument(text: string, bucket: Owning): Access {
  const document = parseXml(text, 'AccessControlPolicy');
  requireMembers(document, ['Owner', 'AccessControlList']);
  const owner = elementText(childElement(document, 'Owner'), 'ID');
  const list = childElement(document, 'AccessControlList');
  if (!list) throw new S3Error('MalformedACLError');
  if (owner !== undefined && owner !== bucket.project_id)
    throw new S3Error('AccessDenied', 'The owner in the ACL is not that of the bucket.');
  requireMembers(list, ['Grant'], ['Grant']);
  const grants = childElements(list, 'Grant').map((grant) => {
    requireMembers(grant, ['Grantee', 'Permission']);
    const grantee = childElement(grant, 'Grantee');
    const permission = elementText(grant, 'Permission') ?? '';
    if (!grantee || !Object.values(PERMISSIONS).includes(permission)) throw new S3Error('MalformedACLError');
    requireMembers(grantee, ['ID', 'DisplayName', 'URI', 'EmailAddress', 'Type']);
    const id = elementText(grantee, 'ID');
    return { kind: id === undefined ? 'uri' : 'id', grantee: id ?? elementText(grantee, 'URI') ?? '', permission };
  });
  return grantedAccess(grants, bucket);
}

/** @throws S3Error AccessControlListNotSupported, AccessDenied */
function permitted(access: Access, bucket: Owning): Access {
  if (access === 'private') return access;
  if (hasNoAcls(bucket)) throw notHonoured(bucket, '');
  requireNotBlocked(bucket);
  return access;
}

function requireNotBlocked(bucket: Owning): void {
  if (!hasNoAcls(bucket) && bucket.public_access_block?.block_public_acls)
    throw new S3Error('AccessDenied', 'The bucket blocks public ACLs (BlockPublicAcls).');
}

function notHonoured(bucket: Owning, sentence: string): S3Error {
  return hasNoAcls(bucket)
    ? new S3Error('AccessControlListNotSupported')
    : new S3Error('NotImplemented', `This ACL is not offered. ${sentence}`);
}

/** Whether the bucket has no ACLs (`BucketOwnerEnforced`). */
export function hasNoAcls({ object_ownership }: Pick<BucketRules, 'object_ownership'>): boolean {
  return object_ownership === 'BucketOwnerEnforced';
}

/** The document of GetBucketAcl and GetObjectAcl. */
export function aclOf({ bucket }: Exchange, isPublic: boolean): XmlElements {
  const grant = (grantee: XmlElements, Permission: string): XmlElements => ({ Grantee: grantee, Permission });
  const Grant = [
    grant({ 'xsi:type': 'CanonicalUser', ID: bucket.project_id }, 'FULL_CONTROL'),
    ...(isPublic ? [grant({ 'xsi:type': 'Group', URI: EVERYBODY }, 'READ')] : []),
  ];
  return { Owner: { ID: bucket.project_id }, AccessControlList: { Grant } };
}
