// Who may do what in a bucket: permissions of access keys, policies, and public access. Pure functions, shared by the
// API, which checks a policy, and by the engines, which follow it.

export type Permission = 'read' | 'read_write' | 'full';

export interface Grant {
  /** null = every bucket of the project. */
  bucket_id: string | null;
  permission: Permission;
}

export interface PolicyStatement {
  id: string | null;
  effect: 'allow' | 'deny';
  /** `*` or values of access_key_id. */
  principals: string[];
  actions: string[];
  /** Patterns of object keys. */
  resources: string[];
}

const READ_OBJECTS = [
  's3:GetObject',
  's3:GetObjectVersion',
  's3:GetObjectAttributes',
  's3:GetObjectVersionAttributes',
  's3:GetObjectTagging',
  's3:GetObjectVersionTagging',
  's3:GetObjectAcl',
] as const;
const READ_BUCKET = [
  's3:ListBucket',
  's3:ListBucketVersions',
  's3:GetBucketLocation',
  's3:GetBucketVersioning',
  's3:GetBucketCORS',
  's3:GetBucketAcl',
  's3:GetLifecycleConfiguration',
  's3:GetBucketWebsite',
  's3:GetBucketPolicy',
  's3:GetBucketPolicyStatus',
  's3:GetBucketTagging',
] as const;
const WRITE_OBJECTS = [
  's3:PutObject',
  's3:PutObjectTagging',
  's3:PutObjectAcl',
  's3:DeleteObject',
  's3:DeleteObjectTagging',
  's3:AbortMultipartUpload',
  's3:ListMultipartUploadParts',
] as const;
const WRITE_BUCKET = ['s3:ListBucketMultipartUploads'] as const;
const FULL_OBJECTS = ['s3:DeleteObjectVersion', 's3:PutObjectVersionTagging', 's3:DeleteObjectVersionTagging'] as const;
const FULL_BUCKET = [
  's3:PutBucketVersioning',
  's3:PutBucketCORS',
  's3:PutLifecycleConfiguration',
  's3:PutBucketWebsite',
  's3:DeleteBucketWebsite',
  's3:PutBucketPolicy',
  's3:DeleteBucketPolicy',
  's3:PutBucketAcl',
] as const;

export const objectActions = [...READ_OBJECTS, ...WRITE_OBJECTS, ...FULL_OBJECTS] as const;
export const bucketActions = [...READ_BUCKET, ...WRITE_BUCKET, ...FULL_BUCKET] as const;

export type BucketAction = (typeof objectActions)[number] | (typeof bucketActions)[number];

const READ: readonly BucketAction[] = [...READ_OBJECTS, ...READ_BUCKET];
const WRITE: readonly BucketAction[] = [...READ, ...WRITE_OBJECTS, ...WRITE_BUCKET];

/** What a permission allows. */
export const permittedActions: Record<Permission, ReadonlySet<BucketAction>> = {
  read: new Set(READ),
  read_write: new Set(WRITE),
  full: new Set([...objectActions, ...bucketActions]),
};

/** What everybody may do in a bucket that is read publicly, and with an object that is. */
export const PUBLIC_ACTIONS: readonly BucketAction[] = ['s3:GetObject'];

/** Actions whose pattern is compared with the prefix of the list. */
const LISTS: readonly BucketAction[] = ['s3:ListBucket', 's3:ListBucketVersions', 's3:ListBucketMultipartUploads'];
const ALL_ACTIONS: readonly BucketAction[] = [...objectActions, ...bucketActions];

export interface AccessRequest {
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

export interface BucketRules {
  access: 'private' | 'public_read';
  policy: readonly PolicyStatement[];
}

/** A deny wins; then the owner, grants, public access and the policy may each allow. */
export function isAllowed(bucket: BucketRules, request: AccessRequest, isPublicObject = false): boolean {
  const matching = bucket.policy.filter((statement) => matchesStatement(statement, request));
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

/** What is wrong with a policy, as a sentence; null if nothing is. @param principals access keys of the project */
export function policyMistake(policy: readonly PolicyStatement[], principals: ReadonlySet<string>): string | null {
  for (const [index, statement] of policy.entries()) {
    const at = `Statement ${index + 1}`;
    const principal = statement.principals.find((one) => one !== '*' && !principals.has(one));
    if (principal !== undefined)
      return `${at}: \`${principal}\` is neither \`*\` nor the \`access_key_id\` of a key of this project.`;
    const action = statement.actions.find((one) => !ALL_ACTIONS.some((known) => wildcardMatches(one, known)));
    if (action !== undefined) return `${at}: \`${action}\` is no action of the S3 endpoint.`;
    const pattern = statement.resources.find((one) => one === '' || one.includes('\0') || one.startsWith('arn:'));
    if (pattern !== undefined)
      return `${at}: \`${pattern}\` is no pattern of object keys. Write \`*\` or \`images/*\`, without \`arn:\`.`;
  }
  return null;
}

/** The actions that a list with wildcards names. */
export function expandActions(actions: readonly string[]): BucketAction[] {
  return ALL_ACTIONS.filter((known) => actions.some((action) => wildcardMatches(action, known)));
}

function matchesStatement(statement: PolicyStatement, { principal, action, resource }: AccessRequest): boolean {
  const { principals, actions, resources } = statement;
  if (!principals.includes('*') && (principal === null || !principals.includes(principal))) return false;
  if (!actions.some((one) => wildcardMatches(one, action))) return false;
  const isOfBucket = (bucketActions as readonly string[]).includes(action) && !LISTS.includes(action);
  return isOfBucket ? resources.includes('*') : resources.some((one) => wildcardMatches(one, resource));
}

/**
 * `*` stands for any characters, `?` for one. It goes back to the last `*` only, so that no pattern takes longer than
 * its length times that of the text.
 */
export function wildcardMatches(pattern: string, text: string): boolean {
  let [p, t, star, mark] = [0, 0, -1, 0];
  while (t < text.length) {
    const wanted = pattern[p];
    if (wanted === '*') {
      star = p;
      mark = t;
      p += 1;
    } else if (wanted === '?' || wanted === text[t]) {
      p += 1;
      t += 1;
    } else if (star >= 0) {
      p = star + 1;
      mark += 1;
      t = mark;
    } else return false;
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}
