// Bucket policies: evaluation and validation.
import { bucketActions, isListAction, isObjectAction, objectActions, type BucketAction } from './bucket_actions';
import {
  validateCondition,
  conditionsHold,
  isForFixedAddresses,
  type ConditionContext,
  type PolicyCondition,
} from './policy_conditions';
import { wildcardMatches } from '../wildcards';

export { wildcardMatches };

export interface PolicyStatement {
  id: string | null;
  effect: 'allow' | 'deny';
  /** `*` or values of access_key_id. */
  principals: string[];
  /** Case-insensitive, as in AWS policies. */
  actions: string[];
  /**
   * ARNs of the bucket and of objects, each for its own actions only, or key patterns: these are compared with the
   * object key, or the prefix of a list, and `*` matches every action.
   */
  resources: string[];
  /** All of them have to hold. */
  conditions?: PolicyCondition[];
}

/** A request in the form that statements are matched with. */
interface PolicyRequest {
  /** Name of the bucket. */
  bucket: string;
  action: BucketAction;
  /** Object key; for lists the prefix; '' for other bucket actions. */
  resource: string;
  /** Access key; null: anonymous. */
  principal: string | null;
  context: ConditionContext;
}

const ALL_ACTIONS: readonly BucketAction[] = [...objectActions, ...bucketActions];
const ARN = 'arn:aws:s3:::';

export function arnOfBucket(name: string): string {
  return ARN + name;
}

export function isArn(resource: string): boolean {
  return resource.startsWith('arn:');
}

/** Whether an ARN, which may contain wildcards, is of a bucket or of objects in it. */
export function isArnOf(arn: string, bucket: string): boolean {
  if (!arn.startsWith(ARN)) return false;
  const [name = ''] = arn.slice(ARN.length).split('/');
  return wildcardMatches(name, bucket);
}

/** Whether a statement matches a request: principal, action, resource and conditions. */
export function matchesStatement(statement: PolicyStatement, request: PolicyRequest): boolean {
  const { principals, actions, resources, conditions } = statement;
  const { principal, action } = request;
  if (!principals.includes('*') && (principal === null || !principals.includes(principal))) return false;
  if (!actions.some((one) => isAction(one, action))) return false;
  return resources.some((one) => matchesResource(one, request)) && conditionsHold(conditions, request.context);
}

/** Whether a policy allows something to everybody, at whatever address. */
export function isPublicPolicy(policy: readonly PolicyStatement[]): boolean {
  return policy.some(
    ({ effect, principals, conditions }) =>
      effect === 'allow' && principals.includes('*') && !isForFixedAddresses(conditions),
  );
}

function matchesResource(pattern: string, { bucket, action, resource }: PolicyRequest): boolean {
  const isOfObject = isObjectAction(action);
  if (isArn(pattern)) return wildcardMatches(pattern, arnOfBucket(bucket) + (isOfObject ? `/${resource}` : ''));
  return isOfObject || isListAction(action) ? wildcardMatches(pattern, resource) : pattern === '*';
}

function isAction(pattern: string, action: BucketAction): boolean {
  return wildcardMatches(pattern.toLowerCase(), action.toLowerCase());
}

/** The actions matched by a list with wildcards. */
export function expandActions(actions: readonly string[]): BucketAction[] {
  return ALL_ACTIONS.filter((known) => actions.some((action) => isAction(action, known)));
}

/**
 * The error in a policy, as a sentence; null for a valid one.
 * @param of the name of the bucket, and access keys of its project
 */
export function policyMistake(
  policy: readonly PolicyStatement[],
  of: { bucket: string; principals: ReadonlySet<string> },
): string | null {
  for (const [index, statement] of policy.entries()) {
    const mistake = statementMistake(statement, of);
    if (mistake) return `Statement ${index + 1}: ${mistake}`;
  }
  return null;
}

function statementMistake(
  { effect, principals, actions, resources, conditions = [] }: PolicyStatement,
  of: { bucket: string; principals: ReadonlySet<string> },
): string | null {
  const principal = principals.find((one) => one !== '*' && !of.principals.has(one));
  if (principal !== undefined)
    return `\`${principal}\` is neither \`*\` nor the \`access_key_id\` of a key of this project.`;
  const action = actions.find((one) => !expandActions([one]).length);
  if (action !== undefined) return `\`${action}\` is not an action of the S3 endpoint.`;
  const resource = resources
    .filter((one) => one !== '' || !expandActions(actions).every(isListAction))
    .map((one) => resourceMistake(one, of.bucket))
    .find((one) => one !== null);
  if (resource) return resource;
  const condition = conditionsMistake(conditions, resources);
  if (condition) return condition;
  // An allow without effect is harmless; a deny without effect would be mistaken for a protection.
  const arn = arnOfBucket(of.bucket);
  const isVoid = effect === 'deny' && !actions.every((one) => expandActions([one]).some((known) => acts(known)));
  return isVoid
    ? 'An action that is denied applies to none of the resources: ' +
        `\`${arn}\` is for actions on the bucket, \`${arn}/*\` for those on objects.`
    : null;

  function acts(known: BucketAction): boolean {
    if (resources.some((one) => !isArn(one))) return true;
    return resources.some((one) => (isObjectAction(known) ? mayMatchObjects(one) : wildcardMatches(one, arn)));
  }
}

function conditionsMistake(conditions: readonly PolicyCondition[], resources: readonly string[]): string | null {
  const mistake = conditions.map(validateCondition).find((one) => one !== null);
  if (mistake) return mistake;
  const names = conditions.map(({ operator, key }) => `${operator} of ${key.toLowerCase()}`);
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated !== undefined) return `\`${repeated}\` is there more than once.`;
  const isOfPrefix = conditions.some(({ key }) => key.toLowerCase() === 's3:prefix');
  return isOfPrefix && !resources.every(isArn) ? 'A condition on `s3:prefix` needs the ARN of the bucket.' : null;
}

/** Whether it contains a slash, or a wildcard that can match one. */
function mayMatchObjects(arn: string): boolean {
  return arn.includes('/') || arn.includes('*');
}

function resourceMistake(resource: string, bucket: string): string | null {
  if (isArn(resource) && !resource.includes('\0')) {
    if (!isArnOf(resource, bucket))
      return `\`${resource}\` does not belong to this bucket, whose ARN is \`${arnOfBucket(bucket)}\`.`;
    return resource.includes('${') ? `\`${resource}\` contains a variable. Policy variables are not supported.` : null;
  }
  if (resource !== '' && !resource.includes('\0')) return null;
  return `\`${resource}\` is not a pattern of object keys such as \`*\` or \`images/*\`.`;
}
