// Conditions of policy statements, evaluated as IAM does (AWS IAM User Guide, "IAM JSON policy elements: Condition
// operators"). Unknown keys and operators are rejected when a policy is written, never passed over.
import { BlockList, isIP, SocketAddress } from 'node:net';
import { wildcardMatches } from '../wildcards';

export interface PolicyCondition {
  /** `StringLike`, `NotIpAddress`, `BoolIfExists`, … */
  operator: string;
  /** Case-insensitive, as in AWS policies. */
  key: string;
  /** One of them has to match; none may, where the operator is a negated one. */
  values: string[];
}

/** The value that a request has for a key in lower case; undefined where it has none. */
export type ConditionContext = (key: string) => string | undefined;

type KeyType = 'text' | 'boolean' | 'address';

const KEY_TYPES: Readonly<Record<string, KeyType>> = {
  'aws:SourceIp': 'address',
  'aws:SecureTransport': 'boolean',
  'aws:Referer': 'text',
  'aws:UserAgent': 'text',
  's3:prefix': 'text',
  's3:delimiter': 'text',
  's3:x-amz-acl': 'text',
  's3:x-amz-server-side-encryption': 'text',
  's3:x-amz-server-side-encryption-customer-algorithm': 'text',
};
const CONDITION_KEYS = Object.keys(KEY_TYPES);
/** By key in lower case. */
const KEYS: ReadonlyMap<string, KeyType> = new Map(
  Object.entries(KEY_TYPES).map(([key, type]) => [key.toLowerCase(), type]),
);

interface Operator {
  type: KeyType;
  matches(value: string, given: string): boolean;
  /** It holds where no value matches, also where the request does not have the key. */
  isNegated?: true;
}

const isSame = (value: string, given: string): boolean => value === given;
const isSameIgnoringCase = (value: string, given: string): boolean => value.toLowerCase() === given.toLowerCase();

const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['StringEquals', { type: 'text', matches: isSame }],
  ['StringNotEquals', { type: 'text', matches: isSame, isNegated: true }],
  ['StringEqualsIgnoreCase', { type: 'text', matches: isSameIgnoringCase }],
  ['StringNotEqualsIgnoreCase', { type: 'text', matches: isSameIgnoringCase, isNegated: true }],
  ['StringLike', { type: 'text', matches: wildcardMatches }],
  ['StringNotLike', { type: 'text', matches: wildcardMatches, isNegated: true }],
  ['Bool', { type: 'boolean', matches: isSameIgnoringCase }],
  ['IpAddress', { type: 'address', matches: rangeContains }],
  ['NotIpAddress', { type: 'address', matches: rangeContains, isNegated: true }],
]);
const NULL = 'Null';
const IF_EXISTS = /IfExists$/;

/** Whether all conditions hold. */
export function conditionsHold(conditions: readonly PolicyCondition[] | undefined, context: ConditionContext): boolean {
  return (conditions ?? []).every((condition) => holds(condition, context));
}

function holds({ operator: name, key, values }: PolicyCondition, context: ConditionContext): boolean {
  const given = context(key.toLowerCase());
  if (name === NULL) return values.some((value) => (value.toLowerCase() === 'true') === (given === undefined));
  const operator = OPERATORS.get(name.replace(IF_EXISTS, ''));
  if (!operator) throw new Error(`a stored policy has the unknown operator ${name}`);
  if (given === undefined) return IF_EXISTS.test(name) || operator.isNegated === true;
  return values.some((value) => operator.matches(value, given)) !== (operator.isNegated === true);
}

/** The error in a condition, as a sentence; null for a valid one. */
export function validateCondition({ operator: name, key, values }: PolicyCondition): string | null {
  const type = KEYS.get(key.toLowerCase());
  if (!type) return `\`${key}\` is not offered in conditions. Offered are ${CONDITION_KEYS.join(', ')}.`;
  const operator = OPERATORS.get(name.replace(IF_EXISTS, ''));
  if (name !== NULL && !operator) return `The operator \`${name}\` is not offered in conditions.`;
  if (operator && operator.type !== type) return `The operator \`${name}\` is not for \`${key}\`.`;
  if (!values.length) return `The condition on \`${key}\` has no value.`;
  const wrong = values.find((value) => !isValue(value, name === NULL ? 'boolean' : type));
  return wrong === undefined ? null : `\`${wrong}\` is not a value for \`${name}\` of \`${key}\`.`;
}

function isValue(value: string, type: KeyType): boolean {
  if (type === 'boolean') return /^(true|false)$/i.test(value);
  if (type === 'address') return rangeOf(value) !== null;
  // Policy variables are not supported.
  return !value.includes('${') && !value.includes('\0');
}

interface AddressRange {
  list: BlockList;
  family: 'ipv4' | 'ipv6';
  bits: number;
}

/** Addresses of IPv4 are written as such: in the notation of IPv6 a range would match none of them. */
function rangeOf(text: string): AddressRange | null {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (!version || more.length || (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length))) return null;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const bitsMax = version === 4 ? 32 : 128;
  const bits = length === undefined ? bitsMax : Number(length);
  if (bits > bitsMax || address.includes('%') || (version === 6 && mappedAddress(address) !== null)) return null;
  const list = new BlockList();
  list.addSubnet(address, bits, family);
  return { list, family, bits };
}

/** Parsed ranges of policies in use. */
const ranges = new Map<string, AddressRange | null>();
const RANGES_MAX = 1000;

function rangeContains(text: string, given: string): boolean {
  const known = ranges.get(text);
  const range = known === undefined ? rangeOf(text) : known;
  if (known === undefined) {
    if (ranges.size >= RANGES_MAX) ranges.clear();
    ranges.set(text, range);
  }
  const family = isIP(given) === 4 ? 'ipv4' : 'ipv6';
  return range !== null && range.family === family && range.list.check(given, family);
}

/**
 * The address in its plain form: of IPv4 where it is mapped into IPv6, and without zone and port. Undefined for what is
 * no address.
 */
export function plainAddress(text: string): string | undefined {
  const trimmed = text.trim();
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(trimmed) ?? [];
  const address = (bracketed ?? dotted ?? trimmed).replace(/%.*$/, '');
  const version = isIP(address);
  if (!version) return undefined;
  return version === 4 ? address : (mappedAddress(address) ?? address);
}

/** The IPv4 address in `::ffff:192.0.2.1`, in any notation. */
function mappedAddress(address: string): string | null {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(new SocketAddress({ address, family: 'ipv6' }).address)?.[1] ?? null;
}

const WIDE_BITS = { ipv4: 8, ipv6: 32 };

/**
 * Whether conditions restrict a statement to fixed addresses, so that it is not public although it is for everybody
 * (Amazon S3 User Guide, "The meaning of public").
 */
export function isForFixedAddresses(conditions: readonly PolicyCondition[] | undefined): boolean {
  return (conditions ?? []).some(
    ({ operator, values }) =>
      operator === 'IpAddress' &&
      values.every((value) => {
        const range = rangeOf(value);
        return range !== null && range.bits >= WIDE_BITS[range.family];
      }),
  );
}
