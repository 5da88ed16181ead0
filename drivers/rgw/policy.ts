// Grants, public access and bucket policy as an AWS policy for the gateway. Bucket settings are changed through the
// platform's API only, so no key gets those actions.
import {
  isListAction,
  isObjectAction,
  permittedActions,
  PUBLIC_ACTIONS,
} from '../../core/protocols/buckets/bucket_actions';
import { arnOfBucket, expandActions, isArn } from '../../core/protocols/buckets/bucket_policy';
import type { BucketSpec } from '../../engines/object_storage';

interface AwsStatement {
  Sid?: string;
  Effect: 'Allow' | 'Deny';
  Principal: { AWS: string[] };
  Action: string[];
  Resource: string[];
  Condition?: { StringLike: { 's3:prefix': string[] } };
}

export interface AwsPolicy {
  Version: '2012-10-17';
  Statement: AwsStatement[];
}

/** Unknown to gateways before Squid, which reject a policy that names them. */
const UNKNOWN: readonly string[] = [
  ...['s3:GetObjectAttributes', 's3:GetObjectVersionAttributes'],
  ...['s3:GetBucketPublicAccessBlock', 's3:GetBucketOwnershipControls', 's3:GetEncryptionConfiguration'],
];
const isOffered = (action: string): boolean =>
  !UNKNOWN.includes(action) && !/^s3:(Put|Delete)\w*(Bucket|Configuration)/.test(action);

/** @param userOf the gateway user of an access key of the project; undefined for a removed key */
export function awsPolicyOf(
  spec: BucketSpec,
  ownerUid: string,
  userOf: (accessKeyId: string) => string | undefined,
): AwsPolicy {
  const bucket = arnOfBucket(spec.name);
  const objects = `${bucket}/*`;
  // What others have uploaded belongs to them, and the owner of the bucket reads it by this statement alone.
  const statements: AwsStatement[] = [
    { Effect: 'Allow', Principal: { AWS: [arnOf(ownerUid)] }, Action: ['s3:*'], Resource: [bucket, objects] },
  ];
  for (const { access_key_id, permission } of spec.keys) {
    const uid = userOf(access_key_id);
    if (!permission || !uid) continue;
    const Action = [...permittedActions[permission]].filter(isOffered).sort();
    statements.push({ Effect: 'Allow', Principal: { AWS: [arnOf(uid)] }, Action, Resource: [bucket, objects] });
  }
  if (spec.access === 'public_read')
    statements.push({ Effect: 'Allow', Principal: { AWS: ['*'] }, Action: [...PUBLIC_ACTIONS], Resource: [objects] });
  return {
    Version: '2012-10-17',
    Statement: [...statements, ...spec.policy.flatMap((one) => own(one, spec.name, userOf))],
  };
}

function own(
  { id, effect, principals, actions, resources }: BucketSpec['policy'][number],
  name: string,
  userOf: (accessKeyId: string) => string | undefined,
): AwsStatement[] {
  const users = principals.map((one) => (one === '*' ? '*' : userOf(one)));
  const AWS = users.includes('*') ? ['*'] : users.flatMap((uid) => (uid ? [arnOf(uid)] : []));
  if (!AWS.length) return [];
  const all = expandActions(actions).filter(isOffered);
  const bucket = arnOfBucket(name);
  const arns = resources.filter(isArn);
  const patterns = resources.filter((one) => !isArn(one));
  const isWhole = patterns.includes('*');
  const prefixes = { Condition: { StringLike: { 's3:prefix': patterns } } };
  const objects = patterns.map((pattern) => `${bucket}/${pattern}`);
  const lists = all.filter(isListAction);
  const statements = [
    { Action: all.filter(isObjectAction), Resource: [...arns, ...objects] },
    // The pattern of a list is compared with its prefix.
    { Action: patterns.length ? lists : [], Resource: [bucket], ...(!isWhole && prefixes) },
    { Action: arns.length ? lists : [], Resource: arns },
    {
      Action: all.filter((one) => !isObjectAction(one) && !isListAction(one)),
      Resource: [...arns, ...(isWhole ? [bucket] : [])],
    },
  ];
  const common = { ...(id !== null && { Sid: id }), Principal: { AWS } };
  return statements
    .filter(({ Action, Resource }) => Action.length && Resource.length)
    .map((one) => ({ ...common, Effect: effect === 'allow' ? 'Allow' : 'Deny', ...one }));
}

function arnOf(uid: string): string {
  return `arn:aws:iam:::user/${uid}`;
}
