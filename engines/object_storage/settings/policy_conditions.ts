// The element Condition of AWS policies: to conditions of statements, and back.
import { isListAction } from '../../../core/protocols/buckets/bucket_actions';
import { expandActions, isArn } from '../../../core/protocols/buckets/bucket_policy';
import { validateCondition, type PolicyCondition } from '../../../core/protocols/buckets/policy_conditions';
import { S3Error } from '../errors';

export type AwsCondition = Record<string, Record<string, string[]>>;

const PREFIX_KEY = 's3:prefix';

/** @throws S3Error MalformedPolicy, NotImplemented for conditions that are not evaluated */
export function parseConditions(condition: unknown, malformed: (message: string) => S3Error): PolicyCondition[] {
  if (condition === undefined) return [];
  const entriesOf = (value: unknown, element: string): [string, unknown][] => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw malformed(`${element} must be an object.`);
    return Object.entries(value);
  };
  const conditions = entriesOf(condition, 'Condition').flatMap(([operator, tests]) =>
    entriesOf(tests, operator).map(([key, value]) => ({ operator, key, values: valuesOf(value, key, malformed) })),
  );
  const mistake = conditions.map(validateCondition).find((one) => one !== null);
  if (mistake) throw new S3Error('NotImplemented', mistake);
  return conditions;
}

function valuesOf(value: unknown, key: string, malformed: (message: string) => S3Error): string[] {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  if (!all.length || all.some((one) => !['string', 'boolean', 'number'].includes(typeof one)))
    throw malformed(`The condition on ${key} must have strings, numbers or booleans as its values.`);
  return [...new Set(all.map(String))];
}

/**
 * Patterns of the only condition, where it is one that statements of the API have: the prefix of a list. Null for any
 * other.
 * @param conditions of a statement @throws S3Error NotImplemented for a prefix of requests that have none
 */
export function prefixesOf(
  conditions: readonly PolicyCondition[],
  { actions, resources }: { actions: readonly string[]; resources: readonly string[] },
): string[] | null {
  const isOfLists = conditions.some(({ key }) => [PREFIX_KEY, 's3:delimiter'].includes(key.toLowerCase()));
  if (!isOfLists) return null;
  if (expandActions(actions).some((action) => !isListAction(action)) || resources.some((one) => one.includes('/')))
    throw new S3Error(
      'NotImplemented',
      'A condition on s3:prefix is only supported in statements on the bucket whose actions are lists.',
    );
  const [{ operator, key, values } = { operator: '', key: '', values: [] }, ...more] = conditions;
  const isPattern =
    operator === 'StringLike' || (operator === 'StringEquals' && !values.some((one) => /[*?]/.test(one)));
  return !more.length && isPattern && key.toLowerCase() === PREFIX_KEY && !values.some(isArn) ? values : null;
}

/** @param prefixes patterns that lists are compared with beside them */
export function awsConditions(
  conditions: readonly PolicyCondition[] = [],
  prefixes: readonly string[] = [],
): AwsCondition | null {
  const element: AwsCondition = {};
  const all = [
    ...conditions,
    ...(prefixes.length ? [{ operator: 'StringLike', key: PREFIX_KEY, values: [...prefixes] }] : []),
  ];
  for (const { operator, key, values } of all) (element[operator] ??= {})[key] = values;
  return all.length ? element : null;
}
