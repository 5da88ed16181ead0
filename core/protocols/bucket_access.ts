// Access control of buckets: permissions of access keys, policies, and public access. Pure functions, shared by the API
// and the engines, which enforce them.
import { permittedActions, PUBLIC_ACTIONS, type BucketAction, type Permission } from './bucket_actions';
import { matchesStatement, type PolicyStatement } from './bucket_policy';

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
}

interface BucketRules {
  name: string;
  access: 'private' | 'public_read';
  policy: readonly PolicyStatement[];
}

/** A deny takes precedence; otherwise ownership, grants, public access or the policy may allow. */
export function isAllowed(bucket: BucketRules, request: AccessRequest, isPublicObject = false): boolean {
  const matching = bucket.policy.filter((statement) =>
    matchesStatement(statement, { ...request, bucket: bucket.name }),
  );
  if (matching.some(({ effect }) => effect === 'deny')) return false;
  if (request.isOwner) return true;
  if (request.permission && permittedActions[request.permission].has(request.action)) return true;
  const isPublic = bucket.access === 'public_read' || isPublicObject;
  return (isPublic && PUBLIC_ACTIONS.includes(request.action)) || matching.length > 0;
}

/** The permission of a key in a bucket: a grant for the bucket takes precedence over one for all buckets. */
export function permissionIn(grants: readonly Grant[], bucketId: string): Permission | null {
  const own =
    grants.find(({ bucket_id }) => bucket_id === bucketId) ?? grants.find((grant) => grant.bucket_id === null);
  return own?.permission ?? null;
}
