// Bucket policies in the AWS policy language (Amazon S3 User Guide, "Policies and permissions in Amazon S3"), limited
// to the statements that the API supports. Other elements are rejected, never dropped.
import { isListAction, isObjectAction } from '../../../core/protocols/buckets/bucket_actions';
import {
  arnOfBucket,
  expandActions,
  isArn,
  isArnOf,
  wildcardMatches,
  type PolicyStatement,
} from '../../../core/protocols/buckets/bucket_policy';
import { S3Error } from '../errors';
import { awsConditions, parseConditions, prefixesOf, type AwsCondition } from './policy_conditions';

const STATEMENTS_MAX = 100;
const VERSIONS: readonly unknown[] = ['2012-10-17', '2008-10-17', undefined];
const ID_LENGTH_MAX = 100;
/** Characters that PostgreSQL cannot store in text. */
const NO_TEXT = /\0|\p{Surrogate}/u;

interface AwsStatement {
  Sid?: string | undefined;
  Effect: 'Allow' | 'Deny';
  Principal: '*' | { AWS: string[] };
  Action: string[];
  Resource: string[];
  Condition?: AwsCondition;
}

/**
 * Converts statements to an AWS policy. Key patterns become object ARNs, and a condition on the prefix of lists.
 * @param name of the bucket
 */
export function policyDocumentOf(policy: readonly PolicyStatement[], name: string): object {
  return { Version: '2012-10-17', Statement: policy.flatMap((statement) => awsStatements(statement, name)) };
}

function awsStatements(
  { id, effect, principals, actions, resources, conditions }: PolicyStatement,
  name: string,
): AwsStatement[] {
  const common = {
    ...(id !== null && { Sid: id }),
    Effect: effect === 'allow' ? ('Allow' as const) : ('Deny' as const),
    Principal: principals.includes('*') ? ('*' as const) : { AWS: principals },
  };
  const bucket = arnOfBucket(name);
  const patterns = resources.filter((one) => !isArn(one));
  const isWhole = patterns.includes('*');
  const objects = patterns.map((pattern) => `${bucket}/${pattern}`);
  const Resource = [...resources.filter(isArn), ...(isWhole ? [bucket] : []), ...objects];
  const hasBucket = Resource.some((one) => wildcardMatches(one, bucket));
  const Action = hasBucket ? actions : actions.filter((one) => expandActions([one]).some(isObjectAction));
  const lists = patterns.length && !isWhole ? expandActions(actions).filter(isListAction) : [];
  const where = (prefixes: readonly string[]): { Condition?: AwsCondition } => {
    const Condition = awsConditions(conditions, prefixes);
    return Condition ? { Condition } : {};
  };
  return [
    ...(Action.length ? [{ ...common, Action, Resource, ...where([]) }] : []),
    ...(lists.length ? [{ ...common, Sid: undefined, Action: lists, Resource: [bucket], ...where(patterns) }] : []),
  ];
}

/**
 * @param name of the bucket
 * @throws S3Error MalformedPolicy, NotImplemented for unsupported elements of the language
 */
export function parsePolicyDocument(text: string, name: string): PolicyStatement[] {
  const { Version, Id, Statement, ...rest } = parseJson(text);
  requireNone(rest);
  if (!VERSIONS.includes(Version)) throw malformed('The version of a policy must be 2012-10-17 or 2008-10-17.');
  if (Id !== undefined && typeof Id !== 'string') throw malformed('Id must be a string.');
  const statements = Array.isArray(Statement) ? (Statement as unknown[]) : [Statement];
  if (!statements.length || statements.length > STATEMENTS_MAX)
    throw malformed(`A policy must have 1 to ${STATEMENTS_MAX} statements.`);
  const parsed = statements.map((statement) => parseStatement(statement, name));
  const ids = parsed.flatMap(({ id }) => (id === null ? [] : [id]));
  if (new Set(ids).size < ids.length) throw malformed('Two statements have the same Sid.');
  return parsed;
}

/** Of ARNs: clients name it after the region, and do not name that of a region which they do not know. */
const PARTITION = /^arn:(?:aws[a-z-]{0,20})?:s3:::/;
const ARN_OF_AWS = arnOfBucket('');

function parseStatement(statement: unknown, name: string): PolicyStatement {
  if (!isObject(statement)) throw malformed('A statement must be an object.');
  const { Sid, Effect, Principal, Action, Resource, Condition, ...rest } = statement;
  requireNone(rest);
  if (Sid !== undefined && (typeof Sid !== 'string' || !/^[^\0-\x1f]{0,100}$/.test(Sid)))
    throw malformed(`Sid must be a string of at most ${ID_LENGTH_MAX} characters.`);
  if (Effect !== 'Allow' && Effect !== 'Deny') throw malformed('Effect must be Allow or Deny.');
  const resources = textsOf(Resource, 'Resource').map((one) => one.replace(PARTITION, ARN_OF_AWS));
  const wrong = resources.find((one) => !isArnOf(one, name));
  if (wrong !== undefined)
    throw malformed(`The resource ${wrong} does not belong to this bucket, whose ARN is ${arnOfBucket(name)}.`);
  const actions = textsOf(Action, 'Action');
  const conditions = parseConditions(Condition, malformed);
  const prefixes = prefixesOf(conditions, { actions, resources });
  return {
    id: (Sid as string | undefined) || null,
    effect: Effect === 'Allow' ? 'allow' : 'deny',
    principals: principalsOf(Principal),
    actions,
    resources: prefixes ?? resources,
    ...(conditions.length && !prefixes && { conditions }),
  };
}

function principalsOf(principal: unknown): string[] {
  if (principal === '*') return ['*'];
  if (!isObject(principal)) throw malformed('Principal must be * or an object.');
  const { AWS, ...rest } = principal;
  const [kind] = Object.keys(rest);
  if (kind !== undefined) throw new S3Error('NotImplemented', `Principals of the kind ${kind} are not offered.`);
  return textsOf(AWS, 'Principal');
}

/** @throws S3Error MalformedPolicy */
function textsOf(value: unknown, element: string): string[] {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  if (!all.length || all.some((one) => typeof one !== 'string')) throw malformed(`${element} must be a string.`);
  return [...new Set(all as string[])];
}

/** @throws S3Error NotImplemented */
function requireNone(rest: Record<string, unknown>): void {
  const [name] = Object.keys(rest);
  if (name !== undefined) throw new S3Error('NotImplemented', `Policies have no ${name}.`);
}

function parseJson(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text, (key, one: unknown) => {
      if (NO_TEXT.test(key) || (typeof one === 'string' && NO_TEXT.test(one))) throw new Error('no text');
      return one;
    });
    if (isObject(value)) return value;
  } catch {
    // Invalid JSON: see below.
  }
  throw malformed('The policy must be a JSON object whose strings contain no NUL and no unpaired surrogate.');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function malformed(message: string): S3Error {
  return new S3Error('MalformedPolicy', message);
}
