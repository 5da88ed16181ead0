// Whether the names of the installation lead to this machine.
import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { addressesAt, authoritativeAddresses, caaRecords, type Answer } from './lookup';
import type { Plan } from './plan';

export interface NameCheck {
  name: string;
  status: 'ok' | 'missing' | 'wrong' | 'unanswered';
  /** Where the name leads to. */
  addresses: readonly string[];
  /** A sentence for the operator. */
  detail: string;
  /** Not an address is looked for, but an NS record. */
  isDelegation?: boolean;
}

/** What is left to do, in as few sentences as there are mistakes. */
export function textOfOpenRecords(open: readonly NameCheck[]): string {
  const missing = open.filter(({ status, isDelegation }) => status === 'missing' && !isDelegation);
  const names = missing.map(({ name }) => name);
  const all = `${names.slice(0, -1).join(', ')} and ${names.at(-1)} have no address yet: create the records.`;
  const details = open.filter((one) => names.length < 2 || !missing.includes(one)).map(({ detail }) => detail);
  return (names.length < 2 ? details : [all, ...details]).join(' ');
}

/** What a record of its own would be hidden by. */
interface Wildcard {
  parent: string;
  addresses: readonly string[];
}

const list = (items: readonly string[]): string => items.join(' and ');

/** One check for each name of the plan, all at once. */
export async function checkRecords(plan: Plan, resolvers: readonly string[]): Promise<NameCheck[]> {
  const wildcard = await wildcardAbove(plan.platformHost, resolvers);
  return Promise.all(plan.names.map(({ name }) => checkName(name, plan, resolvers, wildcard)));
}

/** A name that nobody can have made, below the wildcard. */
const anyNameBelow = (parent: string): string => `setup-${randomBytes(6).toString('hex')}.${parent}`;

async function wildcardAbove(name: string, resolvers: readonly string[]): Promise<Wildcard> {
  const parent = name.slice(name.indexOf('.') + 1);
  const answers = await addressesAt(resolvers, anyNameBelow(parent));
  return { parent, addresses: answers.find((answer) => answer?.length) ?? [] };
}

async function checkName(
  name: string,
  { addresses: expected }: Plan,
  resolvers: readonly string[],
  wildcard: Wildcard,
): Promise<NameCheck> {
  const asked = name.startsWith('*.') ? anyNameBelow(name.slice(2)) : name;
  const answers = await addressesAt(resolvers, asked);
  const first = judge(name, answers, expected, wildcard);
  const isUnanimous = answers.every((answer) => String(answer) === String(answers[0]));
  if (first.status === 'unanswered' || (first.status === 'ok' && isUnanimous)) return first;
  // Resolvers keep what they knew, also that there was nothing; the authority for certificates asks the servers itself.
  const authoritative = await authoritativeAddresses(resolvers, asked);
  if (authoritative === null) return first;
  const second = judge(name, [authoritative], expected, wildcard);
  if (second.status !== 'ok' || first.status === 'ok') return second;
  return { ...second, detail: `${second.detail} Some resolvers still have the answer of before.` };
}

function judge(name: string, answers: readonly Answer[], expected: readonly string[], wildcard: Wildcard): NameCheck {
  const answered = answers.filter((answer): answer is readonly string[] => answer !== null);
  if (!answered.length)
    return {
      ...{ name, status: 'unanswered', addresses: [] },
      detail: `No DNS resolver answered about ${name}. Check the network of this machine, or set DNS_RESOLVERS.`,
    };
  const addresses = [...new Set(answered.flat())].sort();
  const some = answered.every((answer) => answer.length > 0);
  if (!addresses.length || !some)
    return { name, status: 'missing', addresses, detail: `${name} has no address yet: create the record.` };
  const wrong = addresses.filter((address) => expected.length > 0 && !expected.includes(address));
  if (wrong.length)
    return { name, status: 'wrong', addresses, detail: wrongDetail(name, wrong, addresses, expected, wildcard) };
  if (expected.some((address) => !isIPv6(address)) && addresses.every(isIPv6))
    return { name, status: 'missing', addresses, detail: `${name} has no IPv4 address yet: create the A record.` };
  const hidden = isFromWildcard(name, addresses, wildcard)
    ? ` The wildcard *.${wildcard.parent} gives this answer to every name, also to a misspelt one.`
    : '';
  return { name, status: 'ok', addresses, detail: `${name} leads to ${list(addresses)}.${hidden}` };
}

function wrongDetail(
  name: string,
  wrong: readonly string[],
  addresses: readonly string[],
  expected: readonly string[],
  wildcard: Wildcard,
): string {
  const isOnlyIpv6 = wrong.every(isIPv6) && addresses.some((address) => expected.includes(address));
  if (isOnlyIpv6)
    return (
      `The AAAA record of ${name} leads to ${list(wrong)}, which is not this machine: remove the record, or ` +
      'correct it. Browsers and certificate authorities prefer IPv6.'
    );
  const source = isFromWildcard(name, addresses, wildcard)
    ? `${name} has no record of its own: the wildcard *.${wildcard.parent} leads it to ${list(wrong)}.`
    : `${name} leads to ${list(wrong)}, which is not this machine.`;
  return `${source} Its record must lead to ${list(expected)}; --ip names another address of this machine.`;
}

function isFromWildcard(name: string, addresses: readonly string[], wildcard: Wildcard): boolean {
  const parent = name.slice(name.indexOf('.') + 1);
  return !name.startsWith('*.') && parent === wildcard.parent && String(addresses) === String(wildcard.addresses);
}

/**
 * A sentence where CAA records forbid the authority to issue for a name of the plan (RFC 8659), else null.
 * @param identities names by which records know the authority; empty: unknown, and nothing is checked
 */
export async function caaProblem(
  { names }: Plan,
  identities: readonly string[],
  resolvers: readonly string[],
): Promise<string | null> {
  if (!identities.length) return null;
  for (const { name } of names) {
    const { at, records } = await caaRecords(resolvers, name);
    const issuers = records.filter(({ tag }) => tag === 'issue').map(({ value }) => issuerOf(value));
    if (!issuers.length || issuers.some((issuer) => identities.includes(issuer))) continue;
    const allowed = issuers.filter(Boolean);
    return (
      `A CAA record at ${at} lets ${allowed.length ? `only ${list(allowed)}` : 'no authority'} issue certificates ` +
      `for ${name}. Add the record ${at} CAA 0 issue "${identities[0]}", or choose another --acme-directory.`
    );
  }
  return null;
}

/** Without parameters, such as `; validationmethods=http-01`. */
function issuerOf(value: string): string {
  return (value.split(';')[0] as string).trim().toLowerCase();
}
