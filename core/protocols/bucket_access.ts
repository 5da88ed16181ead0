// Who may do what in a bucket: permissions of access keys, policies, and public access. Pure functions, shared by the
// API and by the engines, which follow them.
import { permittedActions, PUBLIC_ACTIONS, type BucketAction, type Permission } from './bucket_actions';
import { matchesStatement, type PolicyStatement } from './bucket_policy';

export interface Grant {
  /** null = every bucket of the project. */
  bucket_id: string | null;
  permission: Permission;
}

interface AccessRequest {
  action: BucketAction;
  /** Key of the object; of a list, its prefix; '' for other actions on the bucket. */
  resource: string;
  /** Access key, null for everybody. */
  principal: string | null;
  /** What grants of the key allow in this bucket. */
  permission: Permission | null;
  /** The owner: URLs that the API itself has signed. A policy that denies holds for the owner too. */
  isOwner?: boolean;
}

interface BucketRules {
  name: string;
  access: 'private' | 'public_read';
  policy: readonly PolicyStatement[];
}

/** A deny wins; then the owner, grants, public access and the policy may each allow. */
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

/** The permission of a key in one bucket: the grant that names the bucket wins over the one for all. */
export function permissionIn(grants: readonly Grant[], bucketId: string): Permission | null {
  const own =
    grants.find(({ bucket_id }) => bucket_id === bucketId) ?? grants.find((grant) => grant.bucket_id === null);
  return own?.permission ?? null;
}
