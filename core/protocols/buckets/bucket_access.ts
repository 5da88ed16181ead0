// Access control of buckets: permissions of access keys, policies, and public access. Pure functions, shared by the API
// and the engines, which enforce them.
import { permittedActions, PUBLIC_ACTIONS, type BucketAction, type Permission } from './bucket_actions';
import { isPublicPolicy, matchesStatement, type PolicyStatement } from './bucket_policy';
import type { ConditionContext } from './policy_conditions';

export interface Grant {
  /** null = every bucket of the project. */
  bucket_id: string | null;
  permission: Permission;
}

interface AccessRequest {
  action: BucketAction;
  /** Object key; for lists the prefix; '' for other bucket actions. */
  resource: string;
  /** Access key; null: anonymous. */
  principal: string | null;
  /** Permission granted to the key in this bucket. */
  permission: Permission | null;
  /** The owner: URLs signed by the API itself. A deny in a policy applies to the owner too. */
  isOwner?: boolean;
  /** The access key is of the project of the bucket. */
  isOfProject: boolean;
  context: ConditionContext;
}

/** Public access that a client of S3 has blocked; null where it has not. */
export interface PublicAccessBlock {
  /** Requests that would make the bucket or an object public are rejected. */
  block_public_acls: boolean;
  /** What is public by access or ACL is private. */
  ignore_public_acls: boolean;
  /** Policies that are public are rejected. */
  block_public_policy: boolean;
  /** A public policy allows nothing to others than the access keys of the project. */
  restrict_public_buckets: boolean;
}

/** `BucketOwnerEnforced`: objects have no ACLs. */
export type ObjectOwnership = 'BucketOwnerEnforced' | 'BucketOwnerPreferred' | 'ObjectWriter';

export interface BucketRules {
  name: string;
  access: 'private' | 'public_read';
  policy: readonly PolicyStatement[];
  public_access_block: PublicAccessBlock | null;
  object_ownership: ObjectOwnership | null;
}

/** A deny takes precedence; otherwise ownership, grants, public access or the policy may allow. */
export function isAllowed(bucket: BucketRules, request: AccessRequest, isPublicObject = false): boolean {
  const matching = bucket.policy.filter((statement) =>
    matchesStatement(statement, { ...request, bucket: bucket.name }),
  );
  if (matching.some(({ effect }) => effect === 'deny')) return false;
  if (request.isOwner) return true;
  if (request.permission && permittedActions[request.permission].has(request.action)) return true;
  if (isPublicByAcl(bucket, isPublicObject) && PUBLIC_ACTIONS.includes(request.action)) return true;
  const { restrict_public_buckets } = bucket.public_access_block ?? {};
  const isRestricted = restrict_public_buckets === true && !request.isOfProject && isPublicPolicy(bucket.policy);
  return matching.length > 0 && !isRestricted;
}

function isPublicByAcl(bucket: BucketRules, isPublicObject: boolean): boolean {
  if (bucket.public_access_block?.ignore_public_acls) return false;
  return bucket.access === 'public_read' || (isPublicObject && bucket.object_ownership !== 'BucketOwnerEnforced');
}

/** Whether an access key may create buckets in its project: it needs `full` for every bucket. */
export function mayCreateBuckets(grants: readonly Grant[]): boolean {
  return grants.some(({ bucket_id, permission }) => bucket_id === null && permission === 'full');
}

/** The permission of a key in a bucket: a grant for the bucket takes precedence over one for all buckets. */
export function permissionIn(grants: readonly Grant[], bucketId: string): Permission | null {
  const own =
    grants.find(({ bucket_id }) => bucket_id === bucketId) ?? grants.find((grant) => grant.bucket_id === null);
  return own?.permission ?? null;
}
