// Public access block and ownership controls (Amazon S3 User Guide, "Blocking public access to your Amazon S3 storage"
// and "Controlling ownership of objects").
import type { ObjectOwnership, PublicAccessBlock } from '../../../core/protocols/buckets/bucket_access';
import { requireGranted, type Exchange } from '../endpoint_context';
import { S3Error } from '../errors';
import { sendXml } from '../respond';
import { receiveText } from '../upload';
import { childElement, childElements, elementText, parseXml, requireMembers } from '../xml';
import { hasNoAcls } from './acl';
import { changeBucketSettings } from './change_settings';

const XML_BYTES_MAX = 64 * 1024;
const OWNERSHIPS: readonly string[] = ['BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter'];
const MEMBERS = {
  BlockPublicAcls: 'block_public_acls',
  IgnorePublicAcls: 'ignore_public_acls',
  BlockPublicPolicy: 'block_public_policy',
  RestrictPublicBuckets: 'restrict_public_buckets',
} as const satisfies Record<string, keyof PublicAccessBlock>;

/** GetPublicAccessBlock. */
export function getPublicAccessBlock(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketPublicAccessBlock', '');
  const block = exchange.bucket.public_access_block;
  if (!block) throw new S3Error('NoSuchPublicAccessBlockConfiguration');
  const members = Object.entries(MEMBERS).map(([name, column]) => [name, block[column]]);
  sendXml(exchange, 'PublicAccessBlockConfiguration', Object.fromEntries(members) as Record<string, boolean>);
}

/** A bucket whose public ACLs are ignored is private, also in the API. */
export function putPublicAccessBlock(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketPublicAccessBlock', async () => {
    const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'PublicAccessBlockConfiguration');
    requireMembers(document, Object.keys(MEMBERS));
    const isOn = (name: string): boolean => {
      const text = elementText(document, name)?.trim().toLowerCase() ?? 'false';
      if (text !== 'true' && text !== 'false') throw new S3Error('MalformedXML', `${name} must be true or false.`);
      return text === 'true';
    };
    const public_access_block = Object.fromEntries(
      Object.entries(MEMBERS).map(([name, column]) => [column, isOn(name)]),
    ) as unknown as PublicAccessBlock;
    if (!public_access_block.ignore_public_acls) return { public_access_block };
    if (exchange.bucket.website) throw new S3Error('InvalidRequest', 'The bucket is served as a website.');
    return { public_access_block, access: 'private' };
  });
}

/** DeletePublicAccessBlock. */
export function deletePublicAccessBlock(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketPublicAccessBlock', { public_access_block: null }, 204);
}

/** GetBucketOwnershipControls. */
export function getOwnershipControls(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketOwnershipControls', '');
  const { object_ownership: ObjectOwnership } = exchange.bucket;
  if (!ObjectOwnership) throw new S3Error('OwnershipControlsNotFoundError');
  sendXml(exchange, 'OwnershipControls', { Rule: { ObjectOwnership } });
}

/** PutBucketOwnershipControls. */
export function putOwnershipControls(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketOwnershipControls', async () => {
    const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'OwnershipControls');
    requireMembers(document, ['Rule'], ['Rule']);
    const [rule, ...more] = childElements(document, 'Rule');
    if (!rule || more.length) throw new S3Error('MalformedXML', 'Ownership controls must have one rule.');
    requireMembers(rule, ['ObjectOwnership']);
    if (!childElement(rule, 'ObjectOwnership')) throw new S3Error('MalformedXML');
    const object_ownership = ownershipOf(elementText(rule, 'ObjectOwnership') ?? '');
    // Over S3 it is an ACL of the bucket.
    if (exchange.bucket.access === 'public_read' && hasNoAcls({ object_ownership }))
      throw new S3Error('InvalidBucketAclWithObjectOwnership');
    return { object_ownership };
  });
}

/** DeleteBucketOwnershipControls. */
export function deleteOwnershipControls(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketOwnershipControls', { object_ownership: null }, 204);
}

/** @throws S3Error InvalidArgument */
export function ownershipOf(text: string): ObjectOwnership {
  if (OWNERSHIPS.includes(text)) return text as ObjectOwnership;
  throw new S3Error('InvalidArgument', `The ownership of objects must be one of ${OWNERSHIPS.join(', ')}.`);
}

/** What Amazon S3 gives new buckets since April 2023. */
export const NEW_BUCKET_BLOCK: PublicAccessBlock = {
  block_public_acls: true,
  ignore_public_acls: true,
  block_public_policy: true,
  restrict_public_buckets: true,
};
